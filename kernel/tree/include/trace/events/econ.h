/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM econ

#if !defined(_TRACE_ECON_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_ECON_H

#include <linux/tracepoint.h>

TRACE_EVENT(econ_decision,

	TP_PROTO(const char *site, unsigned int order, unsigned long address,
		 u64 cost, u64 benefit, bool go, bool acts),

	TP_ARGS(site, order, address, cost, benefit, go, acts),

	TP_STRUCT__entry(
		__string(site, site)
		__field(unsigned int, order)
		__field(unsigned long, address)
		__field(u64, cost)
		__field(u64, benefit)
		__field(bool, go)
		__field(bool, acts)
	),

	TP_fast_assign(
		__assign_str(site);
		__entry->order = order;
		__entry->address = address;
		__entry->cost = cost;
		__entry->benefit = benefit;
		__entry->go = go;
		__entry->acts = acts;
	),

	TP_printk("site=%s order=%u address=0x%lx cost=%llu benefit=%llu verdict=%s%s",
		  __get_str(site), __entry->order, __entry->address,
		  __entry->cost, __entry->benefit, __entry->go ? "go" : "stay",
		  __entry->acts ? "" : " (observed)")
);

TRACE_EVENT(econ_explored,

	TP_PROTO(const char *site, unsigned long address, u64 cost, u64 benefit),

	TP_ARGS(site, address, cost, benefit),

	TP_STRUCT__entry(
		__string(site, site)
		__field(unsigned long, address)
		__field(u64, cost)
		__field(u64, benefit)
	),

	TP_fast_assign(
		__assign_str(site);
		__entry->address = address;
		__entry->cost = cost;
		__entry->benefit = benefit;
	),

	TP_printk("site=%s address=0x%lx cost=%llu benefit=%llu",
		  __get_str(site), __entry->address, __entry->cost,
		  __entry->benefit)
);

TRACE_EVENT(econ_observed,

	TP_PROTO(unsigned long region, bool is_used),

	TP_ARGS(region, is_used),

	TP_STRUCT__entry(
		__field(unsigned long, region)
		__field(bool, is_used)
	),

	TP_fast_assign(
		__entry->region = region;
		__entry->is_used = is_used;
	),

	TP_printk("region=0x%lx used=%d", __entry->region, __entry->is_used)
);

TRACE_EVENT(econ_blocks,

	TP_PROTO(int nid, unsigned int blocks, unsigned int pages, unsigned int made),

	TP_ARGS(nid, blocks, pages, made),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(unsigned int, blocks)
		__field(unsigned int, pages)
		__field(unsigned int, made)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->blocks = blocks;
		__entry->pages = pages;
		__entry->made = made;
	),

	TP_printk("nid=%d blocks=%u pages=%u made=%u", __entry->nid, __entry->blocks,
		  __entry->pages, __entry->made)
);

TRACE_EVENT(econ_zeroed,

	TP_PROTO(int nid, const char *what, unsigned long kept,
		 unsigned long supposed),

	TP_ARGS(nid, what, kept, supposed),

	TP_STRUCT__entry(
		__field(int, nid)
		__string(what, what)
		__field(unsigned long, kept)
		__field(unsigned long, supposed)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__assign_str(what);
		__entry->kept = kept;
		__entry->supposed = supposed;
	),

	TP_printk("nid=%d what=%s kept=%lu supposed=%lu",
		  __entry->nid, __get_str(what), __entry->kept,
		  __entry->supposed)
);

#endif /* _TRACE_ECON_H */

#include <trace/define_trace.h>
