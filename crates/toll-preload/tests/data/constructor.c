/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Static constructors of a library and of the program itself. */
#include <stdio.h>
#include <stdlib.h>

extern char *early;
static char *own;

__attribute__((constructor)) static void begin(void)
{
	own = calloc(1, 7 << 20);
	own[100] = 1;
}

int main(void)
{
	printf("%d %d\n", early[100], own[100]);
	return 0;
}
