// SPDX-License-Identifier: GPL-2.0-only
/*
 * Profiles: lookup of the rows of a site, and the benefit of regions.
 *
 * tools/testing/tollfree builds and tests this file in user space.
 */

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "model.h"
#include "profile.h"

/**
 * econ_compare_keys - compare the keys of two sites, for sorting
 * @one: key of a site
 * @other: key of another site
 *
 * Context: any.
 * Return: a number below, above or equal to 0.
 */
int econ_compare_keys(const struct econ_site_key *one,
		      const struct econ_site_key *other)
{
	if (one->site != other->site)
		return one->site < other->site ? -1 : 1;
	if (one->class != other->class)
		return one->class < other->class ? -1 : 1;
	if (one->protection != other->protection)
		return one->protection < other->protection ? -1 : 1;
	if (one->ordinal != other->ordinal)
		return one->ordinal < other->ordinal ? -1 : 1;
	return 0;
}

/* Return: index of the first row from @low on that is not before, or is after, a site. */
static u32 econ_row_bound(const struct econ_profile *profile,
			  const struct econ_site_key *key, u32 low,
			  bool is_behind)
{
	u32 high = profile->nr_rows;

	while (low < high) {
		u32 middle = low + (high - low) / 2;
		int order = econ_compare_keys(&profile->rows[middle].key, key);

		if (order < 0 || (!order && is_behind))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct econ_span econ_find_rows(const struct econ_profile *profile,
				       const struct econ_site_key *key)
{
	u32 first = econ_row_bound(profile, key, 0, false);

	return (struct econ_span){
		.first = first,
		.nr = econ_row_bound(profile, key, first, true) - first,
	};
}

/**
 * econ_index_rows - look up the rows of the heap and the bss, which exist once each
 * @profile: the profile; its rows are sorted
 *
 * Context: any.
 */
void econ_index_rows(struct econ_profile *profile)
{
	struct econ_site_key key = {};

	for (key.site = 0; key.site < ECON_MMAP; key.site++)
		profile->spans[key.site] = econ_find_rows(profile, &key);
}

/**
 * econ_rows_of - look up the rows of a site
 * @profile: the profile
 * @key: key of the site
 * @nr_rows: set to the number of rows
 *
 * Takes constant time for the heap and the bss, and a binary search for mappings.
 *
 * Context: any.
 * Return: the first row, which is valid only if @nr_rows is not 0.
 */
const struct econ_row *econ_rows_of(const struct econ_profile *profile,
				    const struct econ_site_key *key,
				    u32 *nr_rows)
{
	struct econ_span span = key->site < ECON_MMAP ?
				profile->spans[key->site] :
				econ_find_rows(profile, key);

	*nr_rows = span.nr;
	return profile->rows + span.first;
}

static bool econ_row_ends_by(const struct econ_row *row, u64 at)
{
	return row->end <= at;
}

/**
 * econ_row_from - find the first row of a site that ends after a byte
 * @rows: rows of the site, from econ_rows_of()
 * @nr: number of rows
 * @at: offset of the byte from the begin of the site
 *
 * Context: any.
 * Return: index of the row, or @nr if there is none.
 */
u32 econ_row_from(const struct econ_row *rows, u32 nr, u64 at)
{
	u32 low = 0, high = nr;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (econ_row_ends_by(&rows[middle], at))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * A run that lasts longer than the profiled one is expected to continue for this
 * fraction of the profiled run, at any time: no better estimate exists.
 */
#define REST_SHARE	8

/**
 * econ_left_ns - benefit for the rest of a run
 * @benefit_ns: benefit over a whole run
 * @run_ns: duration of the profiled run
 * @age_ns: age of the current run
 *
 * Context: any.
 * Return: share of @benefit_ns for the expected rest of the run.
 */
u64 econ_left_ns(u64 benefit_ns, u64 run_ns, u64 age_ns)
{
	u64 left = run_ns > age_ns ? run_ns - age_ns : 0;

	left = max(left, run_ns / REST_SHARE);
	if (!run_ns)
		return 0;
	return mul_u64_u64_div_u64(benefit_ns, left, run_ns);
}

/* Number of observations that a profile counts as: what it says was observed as well. */
#define PROFILE_OBSERVED	4

/**
 * econ_believed_ns - benefit that is left of a claim after observations
 * @benefit_ns: benefit that the profile claims
 * @observed: number of huge pages that were observed
 * @used: number of those that the program used
 *
 * Context: any.
 * Return: share of @benefit_ns: that of used pages, where the profile counts as some
 * observations of used ones.
 */
u64 econ_believed_ns(u64 benefit_ns, u32 observed, u32 used)
{
	/* They are read while they change. */
	used = min(used, observed);
	return mul_u64_u64_div_u64(benefit_ns, (u64)used + PROFILE_OBSERVED,
				   (u64)observed + PROFILE_OBSERVED);
}

/**
 * econ_region_add - add a row to the profile of a region
 * @region: the region
 * @row: the row
 * @bytes: number of bytes of the region in the row, at most 2 MiB
 *
 * Context: any.
 */
void econ_region_add(struct econ_region *region, const struct econ_row *row,
		     u64 bytes)
{
	u64 sure = mul_u64_u64_div_u64(row->benefit_ns, row->confidence, 100);

	region->walks_ns = econ_sum(region->walks_ns,
				    mul_u64_u64_div_u64(sure, bytes,
							ECON_REGION_BYTES));
	region->touched += row->touched * bytes / ECON_REGION_BYTES;
	region->bytes += bytes;
}

/* Extrapolate to the whole region from at least this fraction of it. */
#define KNOWN_SHARE		4

/**
 * econ_region_fill - extrapolate the profile of a region to all of its bytes
 * @region: the region, after all rows were added
 *
 * A mapping begins at another offset in a region in each run, so that rows cover only
 * parts of its first and last region. Less than a quarter is not extrapolated.
 *
 * Context: any.
 */
void econ_region_fill(struct econ_region *region)
{
	u64 bytes = region->bytes;

	if (bytes < ECON_REGION_BYTES / KNOWN_SHARE || bytes >= ECON_REGION_BYTES)
		return;
	region->walks_ns = region->walks_ns > U64_MAX / KNOWN_SHARE ? U64_MAX :
		mul_u64_u64_div_u64(region->walks_ns, ECON_REGION_BYTES, bytes);
	region->touched = region->touched * ECON_REGION_BYTES / bytes;
	region->bytes = ECON_REGION_BYTES;
}

/**
 * econ_rank - rank of a region by its benefit
 * @benefit_ns: benefit of the region
 *
 * Context: any.
 * Return: a number below %ECON_RANKS that does not fall as @benefit_ns grows.
 */
unsigned int econ_rank(u64 benefit_ns)
{
	return fls64(benefit_ns);
}
