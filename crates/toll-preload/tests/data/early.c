/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library with a constructor that allocates before the program starts. */
#include <stdlib.h>

char *early;

__attribute__((constructor)) static void begin(void)
{
	early = malloc(6 << 20);
	early[100] = 42;
}
