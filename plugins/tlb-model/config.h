/* SPDX-License-Identifier: GPL-2.0-only */
/* TLB geometry as text: NAME=VALUE. */
#ifndef TOLL_TLB_CONFIG_H
#define TOLL_TLB_CONFIG_H

#include "tlb.h"

/*
 * l1_4k=ENTRIESxWAYS, l1_2m, l1_1g for data, l1c_4k, l1c_2m, l1c_1g for code, l2_4k,
 * l2_2m, l2_1g, pde, pdpte; l2_shared=0|1. False: invalid.
 */
bool tlb_config_set(struct tlb_config *config, const char *name, const char *value);

#endif
