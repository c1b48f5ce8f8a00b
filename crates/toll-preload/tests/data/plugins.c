/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads, uses and unloads plug-ins in turn, so that they reuse each other's addresses. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int round, i;

	for (round = 0; round < 3; round++) {
		for (i = 1; i < argc; i++) {
			void *plugin = dlopen(argv[i], RTLD_NOW);
			char *(*make)(void) = (char *(*)(void))dlsym(plugin, "make");
			char *p = make();
			printf("%d ", p[99]);
			free(p);
			dlclose(plugin);
		}
	}
	printf("\n");
	return 0;
}
