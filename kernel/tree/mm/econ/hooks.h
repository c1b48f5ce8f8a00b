/* SPDX-License-Identifier: GPL-2.0-only */
/* Interface of econ to the rest of mm/. */
#ifndef _MM_ECON_HOOKS_H
#define _MM_ECON_HOOKS_H

#include "decision.h"
#include "watch.h"
#include "zeroed.h"

#endif /* _MM_ECON_HOOKS_H */
