/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plug-in that allocates; built twice with different NAMEs. */
#include <stdlib.h>

char *make(void)
{
	char *p = malloc((size_t)NAME << 20);
	p[99] = NAME;
	return p;
}
