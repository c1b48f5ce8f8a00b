// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints what fs/morsel/survey.c reads from images, to be compared with what another reader
 * of the format finds. Standard input has the images: the length, 8 bytes, and the bytes.
 */

#include "../../../fs/morsel/format.c"
#include "../../../fs/morsel/survey.c"

#include <stdio.h>

struct image {
	struct morsel_medium medium;
	u8 *bytes;
};

static int read_image(const struct morsel_medium *medium, u64 offset, void *buffer,
		      size_t length)
{
	memcpy(buffer, ((const struct image *)medium)->bytes + offset, length);
	return 0;
}

static void print_record(const struct morsel_record *record)
{
	printf("inode %llu %o %u %u %llu %#llx %llu %llu %llu %u %u %llu %llu\n",
	       (unsigned long long)record->number, record->mode, record->uid, record->gid,
	       (unsigned long long)record->size, (unsigned long long)record->root,
	       (unsigned long long)record->xattr, (unsigned long long)record->mtime,
	       (unsigned long long)record->ctime, record->rdev, record->generation,
	       (unsigned long long)record->links, (unsigned long long)record->pages);
}

static void print_name(const struct morsel_entry *entry)
{
	printf("name %llu %llu %llu ", (unsigned long long)entry->slot,
	       (unsigned long long)entry->parent, (unsigned long long)entry->inode);
	for (int i = 0; i < entry->length; i++)
		printf("%02x", (unsigned char)entry->text[i]);
	printf("\n");
}

static int compare_slots(const void *one, const void *other)
{
	const struct morsel_entry *a = *(struct morsel_entry *const *)one;
	const struct morsel_entry *b = *(struct morsel_entry *const *)other;

	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static void print_survey(struct morsel_survey *survey)
{
	printf("whole %llu damaged copies %u leftovers %llu owned %lu\n",
	       (unsigned long long)survey->super.pages, survey->super.damaged,
	       (unsigned long long)survey->leftovers,
	       bitmap_weight(survey->owned, survey->super.pages));
	for (u64 i = 0; i < survey->nr_records; i++)
		print_record(&survey->records[i]);
	sort(survey->names, survey->nr_names, sizeof(*survey->names), compare_slots, NULL);
	for (u64 i = 0; i < survey->nr_names; i++)
		print_name(survey->names[i]);
}

static void read_one(struct image *image)
{
	struct morsel_survey survey;
	int err = morsel_survey(&survey, &image->medium);

	if (!err)
		print_survey(&survey);
	else
		printf("%s: %s at %#llx\n", survey.super.problem ? "refused" : "damaged",
		       survey.problem, (unsigned long long)survey.where);
	printf("\n");
	fflush(stdout);
	morsel_survey_free(&survey);
}

int main(void)
{
	u64 length;

	while (fread(&length, sizeof(length), 1, stdin) == 1) {
		struct image image = {
			.medium = { .read = read_image, .pages = length >> MORSEL_FORMAT_SHIFT },
			.bytes = malloc(length),
		};

		if (length && (!image.bytes || fread(image.bytes, length, 1, stdin) != 1))
			return 1;
		read_one(&image);
		free(image.bytes);
	}
	return 0;
}
