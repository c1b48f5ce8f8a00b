/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM luf

#if !defined(_TRACE_LUF_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_LUF_H

#include <linux/tracepoint.h>

TRACE_DEFINE_ENUM(LUF_KSWAPD);
TRACE_DEFINE_ENUM(LUF_DIRECT);
TRACE_DEFINE_ENUM(LUF_DEMOTION);
TRACE_DEFINE_ENUM(LUF_PROMOTION);
TRACE_DEFINE_ENUM(LUF_COMPACTION);
TRACE_DEFINE_ENUM(LUF_FOR_ALLOCATION);
TRACE_DEFINE_ENUM(LUF_FOR_KSWAPD);
TRACE_DEFINE_ENUM(LUF_FOR_RECLAIM);
TRACE_DEFINE_ENUM(LUF_FOR_CAP);
TRACE_DEFINE_ENUM(LUF_FOR_AGE);
TRACE_DEFINE_ENUM(LUF_FOR_DRAIN);
TRACE_DEFINE_ENUM(LUF_FOR_WRITER);
TRACE_DEFINE_ENUM(LUF_FOR_COMPACTION);
TRACE_DEFINE_ENUM(LUF_FOR_KEPT);
TRACE_DEFINE_ENUM(LUF_FOR_MM);
TRACE_DEFINE_ENUM(LUF_FOR_PTE);

TRACE_EVENT(luf_defer,

	TP_PROTO(unsigned long pfn, unsigned long pages, int path, u64 first,
		 u64 last),

	TP_ARGS(pfn, pages, path, first, last),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned long, pages)
		__field(int, path)
		__field(u64, first)
		__field(u64, last)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->pages = pages;
		__entry->path = path;
		__entry->first = first;
		__entry->last = last;
	),

	TP_printk("pfn=0x%lx pages=%lu path=%s generations=%llu-%llu",
		  __entry->pfn, __entry->pages,
		  __print_symbolic(__entry->path,
				   { LUF_KSWAPD, "kswapd" },
				   { LUF_DIRECT, "direct" },
				   { LUF_DEMOTION, "demotion" },
				   { LUF_PROMOTION, "promotion" },
				   { LUF_COMPACTION, "compaction" }),
		  __entry->first, __entry->last)
);

TRACE_EVENT(luf_flush,

	TP_PROTO(int reason, u64 first, u64 last, unsigned long pages,
		 unsigned int cpus),

	TP_ARGS(reason, first, last, pages, cpus),

	TP_STRUCT__entry(
		__field(int, reason)
		__field(u64, first)
		__field(u64, last)
		__field(unsigned long, pages)
		__field(unsigned int, cpus)
	),

	TP_fast_assign(
		__entry->reason = reason;
		__entry->first = first;
		__entry->last = last;
		__entry->pages = pages;
		__entry->cpus = cpus;
	),

	TP_printk("reason=%s generations=%llu-%llu pages=%lu cpus=%u",
		  __print_symbolic(__entry->reason,
				   { LUF_FOR_ALLOCATION, "allocation" },
				   { LUF_FOR_KSWAPD, "kswapd" },
				   { LUF_FOR_RECLAIM, "reclaim" },
				   { LUF_FOR_CAP, "cap" },
				   { LUF_FOR_AGE, "age" },
				   { LUF_FOR_DRAIN, "drain" },
				   { LUF_FOR_WRITER, "writer" },
				   { LUF_FOR_COMPACTION, "compaction" },
				   { LUF_FOR_KEPT, "kept" },
				   { LUF_FOR_MM, "mm" },
				   { LUF_FOR_PTE, "pte" }),
		  __entry->first, __entry->last, __entry->pages,
		  __entry->cpus)
);

TRACE_EVENT(luf_release,

	TP_PROTO(int nid, int zone, unsigned long pages),

	TP_ARGS(nid, zone, pages),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(int, zone)
		__field(unsigned long, pages)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->zone = zone;
		__entry->pages = pages;
	),

	TP_printk("nid=%d zone=%d pages=%lu",
		  __entry->nid, __entry->zone, __entry->pages)
);

#endif /* _TRACE_LUF_H */

#include <trace/define_trace.h>
