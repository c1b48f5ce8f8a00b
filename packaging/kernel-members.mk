# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints the configured objects of the kernel's directory $(obj): one line for vmlinux, and one for each module with its
# members. Called in a build directory, with the settings that the kernel's own makefiles expect. The lists are those of
# the kernel's makefiles: no other list says which file is part of which module.

obj-y :=
obj-m :=
lib-y :=
src := $(srctree)/$(obj)

include include/config/auto.conf
include $(srctree)/scripts/Kbuild.include
include $(or $(wildcard $(src)/Kbuild),$(src)/Makefile)
include $(srctree)/scripts/Makefile.lib

members = $(addprefix $(obj)/,$(call real-search,$(1:$(obj)/%=%),.o,-objs -y -m))

.PHONY: list
.DEFAULT_GOAL := list
list:
	@: $(info vmlinux $(filter %.o,$(real-obj-y)) $(addprefix $(obj)/,$(lib-y)))
	@: $(foreach module,$(filter %.o,$(obj-m)),$(info $(module) $(call members,$(module))))
