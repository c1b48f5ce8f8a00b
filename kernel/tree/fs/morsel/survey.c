// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a whole range of persistent morsels, and checks all of it before anything is used.
 *
 * The order: superblock, inodes, names, pending renames, directories, and then the data of
 * what has a name. The first damage ends the survey. Each page is taken once, so the time
 * is linear in the range.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/bitmap.h>
#include <linux/bsearch.h>
#include <linux/errno.h>
#include <linux/find.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/stat.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "format.h"

/* Steps of a second in the low bits of a time. */
#define MORSEL_TIME_STEPS	10000
#define MORSEL_TIME_MASK	(BIT_ULL(14) - 1)

/* Buffers of tables, and of a page of slots or content. */
#define MORSEL_PAGE_BUFFER	MORSEL_TOP_LEVEL
#define MORSEL_BUFFERS		(MORSEL_TOP_LEVEL + 1)

static int morsel_damage(struct morsel_survey *survey, u64 where, const char *problem)
{
	survey->problem = problem;
	survey->where = where;
	return -EUCLEAN;
}

static int morsel_read_page(struct morsel_survey *survey, u64 page, void *buffer)
{
	u64 offset = page << MORSEL_FORMAT_SHIFT;
	int err = survey->medium->read(survey->medium, offset, buffer, MORSEL_FORMAT_PAGE);

	cond_resched();
	if (!err)
		return 0;
	survey->problem = "a page cannot be read";
	survey->where = offset;
	return err;
}

/**
 * morsel_make_room - make room for one more element
 * @array: the array; its size doubles
 * @nr: number of its elements
 * @size: size of an element
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int morsel_make_room(void **array, u64 nr, size_t size)
{
	void *larger;

	if (nr & (nr - 1))
		return 0;
	larger = kvrealloc(*array, (nr ? 2 * nr : 1) * size, GFP_KERNEL | __GFP_NOWARN);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	return 0;
}

static int morsel_take(struct morsel_survey *survey, u64 page, u64 count, u64 word)
{
	if (page < 2 || count > survey->super.pages || page > survey->super.pages - count)
		return morsel_damage(survey, word, "an entry leads out of the range");
	if (find_next_bit(survey->owned, page + count, page) < page + count)
		return morsel_damage(survey, word, "a page belongs to something else already");
	bitmap_set(survey->owned + page / BITS_PER_LONG, page % BITS_PER_LONG, count);
	survey->nr_owned += count;
	return 0;
}

/* Trees */

/* Return: 0 to enter a table, 1 to skip it, or an error. */
typedef int (*morsel_node_fn)(struct morsel_survey *survey, const struct morsel_node *node,
			      void *arg);

static int morsel_visit(struct morsel_survey *survey, const struct morsel_node *node,
			morsel_node_fn call, void *arg);

static int morsel_visit_entries(struct morsel_survey *survey, const struct morsel_node *table,
				morsel_node_fn call, void *arg)
{
	u8 *words = survey->buffers[table->level - 1];
	unsigned int slot;
	int err = morsel_read_page(survey, table->page, words);

	for (slot = 0; !err && slot < MORSEL_FORMAT_ENTRIES; slot++) {
		u64 value = get_unaligned_le64(words + slot * sizeof(value));
		struct morsel_node child;
		const char *problem;

		if (!value)
			continue;
		problem = morsel_child_node(table, slot, value, survey->super.pages, &child);
		err = problem ? morsel_damage(survey, child.word, problem) :
				morsel_visit(survey, &child, call, arg);
	}
	return err;
}

/* Levels decrease, so this nests at most five times. */
static int morsel_visit(struct morsel_survey *survey, const struct morsel_node *node,
			morsel_node_fn call, void *arg)
{
	int done = call(survey, node, arg);

	if (done || node->is_block)
		return min(done, 0);
	return morsel_visit_entries(survey, node, call, arg);
}

static int morsel_visit_tree(struct morsel_survey *survey, u64 word, u64 payload,
			     morsel_node_fn call, void *arg)
{
	struct morsel_node root;
	const char *problem;

	morsel_root_node(word, payload, &root);
	if (!root.page)
		return 0;
	problem = morsel_node_problem(&root, survey->super.pages);
	if (problem)
		return morsel_damage(survey, word, problem);
	return morsel_visit(survey, &root, call, arg);
}

/* Slots, and what reads one by its number and place. */
struct morsel_slot_reader {
	struct morsel_slots *slots;
	int (*read)(struct morsel_survey *survey, u64 number, u64 at, const u8 *slot);
};

/* Note a page of slots. */
static int morsel_note_slots(struct morsel_slots *slots, const struct morsel_node *node)
{
	int err = morsel_make_room((void **)&slots->pages, slots->nr, sizeof(*slots->pages));

	if (!err)
		slots->pages[slots->nr++] = (struct morsel_slot_page){
			.index = node->index,
			.page = node->page,
		};
	return err;
}

static int morsel_slot_node(struct morsel_survey *survey, const struct morsel_node *node,
			    void *arg)
{
	const struct morsel_slot_reader *reader = arg;
	unsigned int size = reader->slots->size;
	u64 number = node->index * (MORSEL_FORMAT_PAGE / size);
	u8 *page = survey->buffers[MORSEL_PAGE_BUFFER];
	unsigned int at;
	int err;

	if (node->is_block && node->level)
		return morsel_damage(survey, node->word, "inodes or names are in a block");
	err = morsel_take(survey, node->page, 1, node->word);
	if (err || !node->is_block)
		return err;
	err = morsel_note_slots(reader->slots, node) ?:
	      morsel_read_page(survey, node->page, page);
	for (at = 0; !err && at < MORSEL_FORMAT_PAGE; at += size, number++)
		err = reader->read(survey, number, (node->page << MORSEL_FORMAT_SHIFT) + at,
				   page + at);
	return err;
}

/* Read all slots of a tree. */
static int morsel_read_slots(struct morsel_survey *survey, struct morsel_slot_reader reader)
{
	struct morsel_slots *slots = reader.slots;
	u8 bytes[8];
	int err = survey->medium->read(survey->medium, slots->word, bytes, sizeof(bytes));

	if (err)
		return err;
	if (!morsel_decode(slots->word, get_unaligned_le64(bytes), &slots->root))
		return morsel_damage(survey, slots->word,
				     "the root of the inodes or names is damaged");
	return morsel_visit_tree(survey, slots->word, slots->root, morsel_slot_node, &reader);
}

/* Inodes */

static bool morsel_word(const u8 *slot, u64 at, unsigned int field, u64 *payload)
{
	return morsel_decode(at + field, get_unaligned_le64(slot + field), payload);
}

static bool morsel_field_fits(unsigned int field, u64 payload)
{
	switch (field) {
	case MORSEL_INODE_MODE:
		return payload <= U16_MAX;
	case MORSEL_INODE_SIZE:
		return payload <= MORSEL_MOST_BYTES;
	case MORSEL_INODE_XATTR:
		return !(payload >> MORSEL_PAGE_BITS);
	case MORSEL_INODE_MTIME:
	case MORSEL_INODE_CTIME:
		return (payload & MORSEL_TIME_MASK) < MORSEL_TIME_STEPS;
	case MORSEL_INODE_ROOT:
		return true;
	default:
		return payload <= U32_MAX;
	}
}

static bool morsel_is_link(const struct morsel_record *record)
{
	struct morsel_node root;

	morsel_root_node(0, record->root, &root);
	return record->size > 0 && record->size < MORSEL_FORMAT_PAGE && root.page &&
	       !root.level && root.is_block;
}

static const char *morsel_type_problem(const struct morsel_record *record)
{
	struct morsel_node root;

	if (!record->number)
		return "the inode 0 is in use";
	switch (record->mode & S_IFMT) {
	case S_IFREG:
		return NULL;
	case S_IFLNK:
		return morsel_is_link(record) ? NULL : "a symbolic link has no target";
	case S_IFDIR:
	case S_IFIFO:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFSOCK:
		morsel_root_node(0, record->root, &root);
		if (!root.page && !record->size)
			return NULL;
		return "an inode that is no file has data";
	default:
		return "the type of an inode is not known";
	}
}

/* Decode the words of a slot that is in use. */
static int morsel_decode_inode(struct morsel_survey *survey, const u8 *slot,
			       struct morsel_record *record)
{
	u64 fields[MORSEL_INODE_GENERATION / 8 + 1];
	unsigned int field;
	const char *problem;

	for (field = 0; field <= MORSEL_INODE_GENERATION; field += 8) {
		u64 *payload = &fields[field / 8];

		if (!morsel_word(slot, record->at, field, payload) ||
		    !morsel_field_fits(field, *payload))
			return morsel_damage(survey, record->at + field,
					     "a word of an inode is damaged");
	}
	record->mode = fields[MORSEL_INODE_MODE / 8];
	record->uid = fields[MORSEL_INODE_UID / 8];
	record->gid = fields[MORSEL_INODE_GID / 8];
	record->size = fields[MORSEL_INODE_SIZE / 8];
	record->root = fields[MORSEL_INODE_ROOT / 8];
	record->xattr = fields[MORSEL_INODE_XATTR / 8];
	record->mtime = fields[MORSEL_INODE_MTIME / 8];
	record->ctime = fields[MORSEL_INODE_CTIME / 8];
	record->rdev = fields[MORSEL_INODE_RDEV / 8];
	record->generation = fields[MORSEL_INODE_GENERATION / 8];
	problem = morsel_type_problem(record);
	return problem ? morsel_damage(survey, record->at, problem) : 0;
}

static int morsel_read_inode(struct morsel_survey *survey, u64 number, u64 at, const u8 *slot)
{
	struct morsel_record record = { .number = number, .at = at };
	int err;

	/* Any other value that means 0 is damaged. */
	if (!get_unaligned_le64(slot + MORSEL_INODE_MODE))
		return 0;
	err = morsel_decode_inode(survey, slot, &record) ?:
	      morsel_make_room((void **)&survey->records, survey->nr_records, sizeof(record));
	if (!err)
		survey->records[survey->nr_records++] = record;
	return err;
}

static int morsel_compare_record(const void *key, const void *element)
{
	u64 number = *(const u64 *)key;
	const struct morsel_record *record = element;

	return number < record->number ? -1 : number > record->number;
}

/**
 * morsel_survey_record - find an inode
 * @survey: the survey
 * @number: number of the inode
 *
 * Context: any.
 * Return: the inode, or NULL.
 */
struct morsel_record *morsel_survey_record(const struct morsel_survey *survey, u64 number)
{
	return bsearch(&number, survey->records, survey->nr_records, sizeof(*survey->records),
		       morsel_compare_record);
}

static struct morsel_record *morsel_find_directory(const struct morsel_survey *survey,
						   u64 number)
{
	struct morsel_record *record = morsel_survey_record(survey, number);

	return record && S_ISDIR(record->mode) ? record : NULL;
}

/* Names */

static bool morsel_is_name(const char *text, unsigned int length)
{
	return length && !memchr(text, 0, length) && !memchr(text, '/', length) &&
	       strcmp(text, ".") && strcmp(text, "..");
}

static bool morsel_read_text(const u8 *slot, u64 at, struct morsel_entry *entry)
{
	u64 payload;

	if (!morsel_word(slot, at, MORSEL_NAME_LENGTH, &payload) || payload >> 40)
		return false;
	entry->length = payload;
	memcpy(entry->text, slot + MORSEL_NAME_TEXT, entry->length);
	return morsel_sum(entry->text, entry->length) == (u32)(payload >> 8) &&
	       morsel_is_name(entry->text, entry->length);
}

static int morsel_read_name(struct morsel_survey *survey, u64 number, u64 at, const u8 *slot)
{
	struct morsel_entry *entry;
	u64 inode;
	int err;

	if (!morsel_word(slot, at, MORSEL_NAME_INODE, &inode) ||
	    (inode & ~MORSEL_PENDING) >> MORSEL_PAGE_BITS)
		return morsel_damage(survey, at, "the inode of a name is damaged");
	if (!inode)
		return 0;
	err = morsel_make_room((void **)&survey->entries, survey->nr_entries, sizeof(*entry));
	if (err)
		return err;
	entry = &survey->entries[survey->nr_entries++];
	*entry = (struct morsel_entry){
		.slot = number,
		.at = at,
		.inode = inode & ~MORSEL_PENDING,
		.is_pending = inode & MORSEL_PENDING,
	};
	if (!morsel_word(slot, at, MORSEL_NAME_FROM, &entry->from))
		entry->from = 0;
	if (!morsel_word(slot, at, MORSEL_NAME_OTHER, &entry->other))
		entry->other = U64_MAX;
	entry->is_valid = morsel_word(slot, at, MORSEL_NAME_PARENT, &entry->parent) &&
			  morsel_read_text(slot, at, entry);
	return 0;
}

static int morsel_compare_slot(const void *key, const void *element)
{
	u64 slot = *(const u64 *)key;
	const struct morsel_entry *entry = element;

	return slot < entry->slot ? -1 : slot > entry->slot;
}

static struct morsel_entry *morsel_find_slot(const struct morsel_survey *survey, u64 slot)
{
	return bsearch(&slot, survey->entries, survey->nr_entries, sizeof(*survey->entries),
		       morsel_compare_slot);
}

/*
 * Whether the slot that a pending one names can be its other side: it still has the inode
 * that moves, or already the one that it is to have.
 */
static bool morsel_is_other_side(const struct morsel_entry *target,
				 const struct morsel_entry *from)
{
	if (!target->from || target->from - 1 == target->slot || !target->inode ||
	    target->other == target->inode || target->other == U64_MAX)
		return false;
	if (!from)
		return !target->other;
	return !from->is_pending &&
	       (from->inode == target->inode || from->inode == target->other);
}

/* Whether two pending slots name the same slot, which is free. */
static int morsel_compare_from(const void *one, const void *other)
{
	const struct morsel_entry *a = *(struct morsel_entry *const *)one;
	const struct morsel_entry *b = *(struct morsel_entry *const *)other;

	return a->from < b->from ? -1 : a->from > b->from;
}

/* Check all pending slots before any of them is applied. */
static int morsel_check_pending(struct morsel_survey *survey)
{
	u64 i, nr = 0;

	for (i = 0; i < survey->nr_entries; i++) {
		struct morsel_entry *entry = &survey->entries[i];

		if (!entry->is_pending)
			continue;
		if (!morsel_is_other_side(entry, morsel_find_slot(survey, entry->from - 1)))
			return morsel_damage(survey, entry->at,
					     "a pending rename has no other side");
		survey->names[nr++] = entry;
	}
	sort(survey->names, nr, sizeof(*survey->names), morsel_compare_from, NULL);
	for (i = 1; i < nr; i++)
		if (survey->names[i]->from == survey->names[i - 1]->from)
			return morsel_damage(survey, survey->names[i]->at,
					     "a pending rename has no other side");
	survey->leftovers += nr;
	survey->nr_names = nr;
	return 0;
}

/* Complete pending renames in memory. */
static int morsel_apply_pending(struct morsel_survey *survey)
{
	int err = morsel_check_pending(survey);
	u64 i;

	for (i = 0; !err && i < survey->nr_names; i++) {
		const struct morsel_entry *target = survey->names[i];
		struct morsel_entry *from = morsel_find_slot(survey, target->from - 1);

		if (from)
			from->inode = target->other;
	}
	return err;
}

static const char *morsel_name_problem(const struct morsel_survey *survey,
				       const struct morsel_entry *entry)
{
	if (!entry->is_valid)
		return "a name or its directory is damaged";
	if (entry->inode == MORSEL_ROOT_DIRECTORY)
		return "a name leads to the root directory";
	if (!morsel_survey_record(survey, entry->inode))
		return "a name leads to no inode";
	if (!morsel_find_directory(survey, entry->parent))
		return "the directory of a name is missing";
	return NULL;
}

/* Count a link. A directory has one only. */
static int morsel_link_name(struct morsel_survey *survey, const struct morsel_entry *entry)
{
	struct morsel_record *record = morsel_survey_record(survey, entry->inode);

	if (record->links++ && S_ISDIR(record->mode))
		return morsel_damage(survey, record->at, "a directory has two names");
	record->parent = entry->parent;
	return 0;
}

/* Collect the names that are there after pending renames. */
static int morsel_collect_names(struct morsel_survey *survey)
{
	u64 i;
	int err = 0;

	survey->nr_names = 0;
	for (i = 0; !err && i < survey->nr_entries; i++) {
		struct morsel_entry *entry = &survey->entries[i];
		const char *problem;

		if (!entry->inode)
			continue;
		problem = morsel_name_problem(survey, entry);
		if (problem)
			return morsel_damage(survey, entry->at, problem);
		err = morsel_link_name(survey, entry);
		survey->names[survey->nr_names++] = entry;
	}
	return err;
}

static int morsel_compare_name(const void *one, const void *other)
{
	const struct morsel_entry *a = *(struct morsel_entry *const *)one;
	const struct morsel_entry *b = *(struct morsel_entry *const *)other;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return memcmp(a->text, b->text, a->length);
}

static int morsel_compare_depth(const void *one, const void *other)
{
	const struct morsel_entry *a = *(struct morsel_entry *const *)one;
	const struct morsel_entry *b = *(struct morsel_entry *const *)other;

	return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static int morsel_check_twins(struct morsel_survey *survey)
{
	u64 i;

	sort(survey->names, survey->nr_names, sizeof(*survey->names), morsel_compare_name, NULL);
	for (i = 1; i < survey->nr_names; i++)
		if (!morsel_compare_name(&survey->names[i - 1], &survey->names[i]))
			return morsel_damage(survey, survey->names[i]->at,
					     "a directory has the same name twice");
	return 0;
}

/*
 * Walk up from a directory to one from which the root was reached before, and note the
 * depth of all on the way. The first cycle ends the survey, so the walks take linear time.
 */
static bool morsel_link_directory(struct morsel_survey *survey, struct morsel_record *start)
{
	struct morsel_record *at;
	u64 depth = 0;

	for (at = start; !at->is_linked; at = morsel_find_directory(survey, at->parent)) {
		if (at->is_visited || !at->links)
			return false;
		at->is_visited = true;
		depth++;
	}
	depth += at->depth;
	for (at = start; !at->is_linked; at = morsel_find_directory(survey, at->parent)) {
		at->is_linked = true;
		at->depth = depth--;
	}
	return true;
}

static int morsel_link_directories(struct morsel_survey *survey)
{
	u64 i;

	morsel_survey_record(survey, MORSEL_ROOT_DIRECTORY)->is_linked = true;
	for (i = 0; i < survey->nr_names; i++) {
		struct morsel_entry *name = survey->names[i];
		struct morsel_record *directory = morsel_find_directory(survey, name->parent);

		if (!morsel_link_directory(survey, directory))
			return morsel_damage(survey, name->at,
					     "a name does not hang off the root directory");
		name->depth = directory->depth;
	}
	sort(survey->names, survey->nr_names, sizeof(*survey->names), morsel_compare_depth,
	     NULL);
	return 0;
}

static int morsel_check_names(struct morsel_survey *survey)
{
	survey->names = kvmalloc_array(survey->nr_entries + 1, sizeof(*survey->names),
				       GFP_KERNEL | __GFP_NOWARN);
	if (!survey->names)
		return -ENOMEM;
	return morsel_apply_pending(survey) ?: morsel_collect_names(survey) ?:
	       morsel_check_twins(survey) ?: morsel_link_directories(survey);
}

/* Data */

static bool morsel_record_is_sealed(const struct morsel_record *record)
{
	return record->root & MORSEL_ROOT_SEALED;
}

static int morsel_data_node(struct morsel_survey *survey, const struct morsel_node *node,
			    void *arg)
{
	struct morsel_record *record = arg;
	u64 end = (record->size + MORSEL_FORMAT_PAGE - 1) >> MORSEL_FORMAT_SHIFT;

	/* What a crash may leave. */
	if (node->index >= end && !morsel_record_is_sealed(record)) {
		survey->leftovers++;
		return 1;
	}
	if (node->is_block)
		record->pages += morsel_node_pages(node);
	return morsel_take(survey, node->page, morsel_node_pages(node), node->word);
}

static int morsel_check_target(struct morsel_survey *survey, const struct morsel_record *record)
{
	u8 *page = survey->buffers[MORSEL_PAGE_BUFFER];
	struct morsel_node root;
	int err;

	if (!S_ISLNK(record->mode))
		return 0;
	morsel_root_node(0, record->root, &root);
	err = morsel_read_page(survey, root.page, page);
	if (!err && memchr(page, 0, record->size))
		err = morsel_damage(survey, record->at,
				    "the target of a symbolic link is damaged");
	return err;
}

static unsigned int morsel_xattr_end(const u8 *page, unsigned int at)
{
	return at + MORSEL_XATTR_LENGTHS + page[at] + get_unaligned_le16(page + at + 2);
}

/* Whether an attribute before the one at a place has the same name. */
static bool morsel_xattr_is_twin(const u8 *page, unsigned int at)
{
	unsigned int other;

	for (other = MORSEL_XATTR_HEADER; other < at; other = morsel_xattr_end(page, other))
		if (page[other] == page[at] &&
		    !memcmp(page + other + MORSEL_XATTR_LENGTHS,
			    page + at + MORSEL_XATTR_LENGTHS, page[at]))
			return true;
	return false;
}

static bool morsel_xattrs_fit(const u8 *page, unsigned int used)
{
	unsigned int at = MORSEL_XATTR_HEADER, count = get_unaligned_le16(page + 6);

	for (; at < used; count--) {
		if (used - at < MORSEL_XATTR_LENGTHS || morsel_xattr_end(page, at) > used ||
		    !page[at] || page[at + 1] || !count ||
		    memchr(page + at + MORSEL_XATTR_LENGTHS, 0, page[at]) ||
		    morsel_xattr_is_twin(page, at))
			return false;
		at = morsel_xattr_end(page, at);
	}
	return !count;
}

/**
 * morsel_xattrs_are_valid - check a page of extended attributes
 * @page: its content
 * @number: its number
 *
 * Context: any.
 * Return: true if it can be read by morsel_next_xattr().
 */
bool morsel_xattrs_are_valid(const u8 *page, u64 number)
{
	unsigned int used = get_unaligned_le16(page + 4);

	return used >= MORSEL_XATTR_HEADER && used <= MORSEL_FORMAT_PAGE &&
	       get_unaligned_le32(page) == morsel_sum(page + 4, used - 4) &&
	       get_unaligned_le64(page + 8) == number && morsel_xattrs_fit(page, used);
}

/**
 * morsel_next_xattr - read an extended attribute
 * @page: a valid page of them
 * @at: where it is; set to where the next one is
 * @xattr: set to the attribute
 *
 * Context: any.
 * Return: false if there is none.
 */
bool morsel_next_xattr(const u8 *page, unsigned int *at, struct morsel_xattr *xattr)
{
	const u8 *header = page + max(*at, MORSEL_XATTR_HEADER);

	if (header >= page + get_unaligned_le16(page + 4))
		return false;
	memcpy(xattr->name, header + MORSEL_XATTR_LENGTHS, header[0]);
	xattr->name[header[0]] = 0;
	xattr->value = header + MORSEL_XATTR_LENGTHS + header[0];
	xattr->size = get_unaligned_le16(header + 2);
	*at = xattr->value + xattr->size - page;
	return true;
}

static int morsel_check_xattrs(struct morsel_survey *survey, const struct morsel_record *record)
{
	u8 *page = survey->buffers[MORSEL_PAGE_BUFFER];
	int err;

	if (!record->xattr)
		return 0;
	err = morsel_take(survey, record->xattr, 1, record->at + MORSEL_INODE_XATTR) ?:
	      morsel_read_page(survey, record->xattr, page);
	if (!err && !morsel_xattrs_are_valid(page, record->xattr))
		err = morsel_damage(survey, record->at + MORSEL_INODE_XATTR,
				    "extended attributes are damaged");
	return err;
}

/* What has no name is not visited: its words may lead to pages that others own. */
static int morsel_check_data(struct morsel_survey *survey)
{
	u64 i;
	int err = 0;

	for (i = 0; !err && i < survey->nr_records; i++) {
		struct morsel_record *record = &survey->records[i];

		if (!record->links && record->number != MORSEL_ROOT_DIRECTORY) {
			survey->leftovers++;
			continue;
		}
		err = morsel_visit_tree(survey, record->at + MORSEL_INODE_ROOT, record->root,
					morsel_data_node, record) ?:
		      morsel_check_target(survey, record) ?:
		      morsel_check_xattrs(survey, record);
	}
	return err;
}

/* All of it */

static int morsel_survey_prepare(struct morsel_survey *survey)
{
	int err;

	survey->buffers = kvmalloc_array(MORSEL_BUFFERS, MORSEL_FORMAT_PAGE, GFP_KERNEL);
	if (!survey->buffers)
		return -ENOMEM;
	err = morsel_read_super(survey->medium, survey->buffers[MORSEL_PAGE_BUFFER],
				&survey->super);
	survey->problem = survey->super.problem;
	if (err)
		return err;
	survey->owned = kvcalloc(BITS_TO_LONGS(survey->super.pages), sizeof(long),
				 GFP_KERNEL | __GFP_NOWARN);
	if (!survey->owned)
		return -ENOMEM;
	bitmap_set(survey->owned, 0, 2);
	survey->nr_owned = 2;
	return 0;
}

static int morsel_check_root_directory(struct morsel_survey *survey)
{
	if (morsel_find_directory(survey, MORSEL_ROOT_DIRECTORY))
		return 0;
	return morsel_damage(survey, MORSEL_INODES, "the root directory is missing");
}

/**
 * morsel_survey - read and check a range
 * @survey: set to what it holds; to be freed in any case
 * @medium: the range; the number of pages is set to the recorded one
 *
 * The damage of one copy of the superblock is no error.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL for a range that is not of this format, -EUCLEAN for a damaged one,
 * both with the problem in @survey, -ENOMEM, or the error of a read.
 */
int morsel_survey(struct morsel_survey *survey, struct morsel_medium *medium)
{
	*survey = (struct morsel_survey){
		.medium = medium,
		.inode_slots = { .word = MORSEL_INODES, .size = MORSEL_INODE_SLOT },
		.name_slots = { .word = MORSEL_NAMES, .size = MORSEL_NAME_SLOT },
	};
	return morsel_survey_prepare(survey) ?:
	       morsel_read_slots(survey, (struct morsel_slot_reader){
				 &survey->inode_slots, morsel_read_inode }) ?:
	       morsel_check_root_directory(survey) ?:
	       morsel_read_slots(survey, (struct morsel_slot_reader){
				 &survey->name_slots, morsel_read_name }) ?:
	       morsel_check_names(survey) ?:
	       morsel_check_data(survey);
}

/**
 * morsel_survey_free - free what a survey holds
 * @survey: the survey
 *
 * Context: may sleep.
 */
void morsel_survey_free(struct morsel_survey *survey)
{
	kvfree(survey->inode_slots.pages);
	kvfree(survey->name_slots.pages);
	kvfree(survey->records);
	kvfree(survey->entries);
	kvfree(survey->names);
	kvfree(survey->owned);
	kvfree(survey->buffers);
}
