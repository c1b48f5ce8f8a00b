/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM morsel

#if !defined(_TRACE_MORSEL_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_MORSEL_H

#include <linux/fs.h>
#include <linux/tracepoint.h>

TRACE_EVENT(morsel_attach,

	TP_PROTO(const struct mm_struct *mm, unsigned long begin,
		 unsigned long end, unsigned long pgoff),

	TP_ARGS(mm, begin, end, pgoff),

	TP_STRUCT__entry(
		__field(const void *, mm)
		__field(unsigned long, begin)
		__field(unsigned long, end)
		__field(unsigned long, pgoff)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->begin = begin;
		__entry->end = end;
		__entry->pgoff = pgoff;
	),

	TP_printk("mm=%p range=0x%lx-0x%lx pgoff=%lu", __entry->mm,
		  __entry->begin, __entry->end, __entry->pgoff)
);

TRACE_EVENT(morsel_detach,

	TP_PROTO(const struct mm_struct *mm, unsigned long begin,
		 unsigned long end),

	TP_ARGS(mm, begin, end),

	TP_STRUCT__entry(
		__field(const void *, mm)
		__field(unsigned long, begin)
		__field(unsigned long, end)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->begin = begin;
		__entry->end = end;
	),

	TP_printk("mm=%p range=0x%lx-0x%lx", __entry->mm, __entry->begin,
		  __entry->end)
);

TRACE_EVENT(morsel_seal,

	TP_PROTO(const struct inode *inode),

	TP_ARGS(inode),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(loff_t, size)
	),

	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->size = i_size_read(inode);
	),

	TP_printk("dev=%d:%d ino=%lu size=%lld", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->size)
);

DECLARE_EVENT_CLASS(morsel_hold_class,

	TP_PROTO(const struct inode *inode, unsigned int holds),

	TP_ARGS(inode, holds),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(unsigned int, holds)
	),

	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->holds = holds;
	),

	TP_printk("dev=%d:%d ino=%lu holds=%u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->holds)
);

DEFINE_EVENT(morsel_hold_class, morsel_hold,

	TP_PROTO(const struct inode *inode, unsigned int holds),

	TP_ARGS(inode, holds)
);

DEFINE_EVENT(morsel_hold_class, morsel_unhold,

	TP_PROTO(const struct inode *inode, unsigned int holds),

	TP_ARGS(inode, holds)
);

TRACE_EVENT(morsel_build,

	TP_PROTO(const struct inode *inode, pgoff_t index, int err),

	TP_ARGS(inode, index, err),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(pgoff_t, index)
		__field(int, err)
	),

	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->index = index;
		__entry->err = err;
	),

	TP_printk("dev=%d:%d ino=%lu index=%lu err=%d", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->index, __entry->err)
);

TRACE_EVENT(morsel_add,

	TP_PROTO(const struct inode *inode, pgoff_t index, unsigned int level, int err),

	TP_ARGS(inode, index, level, err),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(pgoff_t, index)
		__field(unsigned int, level)
		__field(int, err)
	),

	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->index = index;
		__entry->level = level;
		__entry->err = err;
	),

	TP_printk("dev=%d:%d ino=%lu index=%lu level=%u err=%d", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->index, __entry->level,
		  __entry->err)
);

TRACE_EVENT(morsel_broken,

	TP_PROTO(const struct inode *inode, pgoff_t index),

	TP_ARGS(inode, index),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(pgoff_t, index)
	),

	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->index = index;
	),

	TP_printk("dev=%d:%d ino=%lu index=%lu", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->index)
);

#endif /* _TRACE_MORSEL_H */

#include <trace/define_trace.h>
