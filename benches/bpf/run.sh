#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what tollfree's BPF programs cost a machine on which they count: benches/bpf/run.sh [ROUNDS [SECONDS]]
# A load causes events at a fixed rate and computes in between; on the other CPUs threads compute. In each round the load
# runs once while `tollfree stat -a` counts, and once without it, in alternating order. Prints how many more steps were
# computed without it, with the median and the quartiles over rounds.
# Goal: below 1 % beside 100,000 TLB shootdowns a second. Page faults have no goal.
# In a guest with a clock that counts instructions (toll-lab shell --icount), INSTRUCTIONS=yes prints instead what the
# kernel counts (kernel.bpf_stats_enabled): the instructions of the programs for each event, with those of the statistics,
# and without those that enter and leave a program, under 100 for each. What the load lost is beside it; it varies with the
# order in which the emulated CPUs take turns. The goal is then for the number of CPUs there, with 2.5e9 instructions a
# second each.
# LOAD names a compiled benches/bpf/load.c; RATE is another rate.
# Status: 0 met, 1 not met, 3 it could not be measured: also if the rate was not reached.
set -u
here=$(dirname "$0")
rounds=${1:-10}
seconds=${2:-3}
instructions=${INSTRUCTIONS:-}
rate=${RATE:-100000}
tollfree=${TOLLFREE:-$here/../../target/release/tollfree}
work=$(mktemp -d) || exit 3
counter=
trap '[ -z "$counter" ] || kill "$counter" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 3' HUP INT TERM

load=${LOAD:-}
if [ -z "$load" ]; then
	load=$work/load
	${CC:-cc} -O2 -pthread -o "$load" "$here/load.c" || exit 3
fi

# Counts until stop_counting. Its first report shows that the programs run.
start_counting() {
	: >"$work/counts"
	"$tollfree" --json stat -a -I 200ms >"$work/counts" 2>"$work/errors" &
	counter=$!
	while [ "$(wc -l <"$work/counts")" = 0 ] && kill -0 "$counter" 2>/dev/null; do
		sleep 0.1
	done
	grep -q '"source":"bpf"' "$work/counts" || {
		echo "BPF programs cannot be used here:"
		"$tollfree" doctor | grep -A 1 'BPF programs'
		exit 3
	}
	kill "$counter"
	wait "$counter" 2>/dev/null
	# Without reports, so that the programs alone are measured. It is ready when it uses no CPU time any more.
	"$tollfree" stat -a --for 1h >/dev/null 2>&1 &
	counter=$!
	before=
	sleep 2
	until [ "$before" = "$(time_of $counter)" ]; do
		before=$(time_of $counter)
		sleep 1
	done
}

# The CPU time of a process, in ticks: time_of PID
time_of() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

stop_counting() {
	kill "$counter"
	wait "$counter" 2>/dev/null
	counter=
}

# Appends what the load computed: measure KIND FILE
measure() {
	"$load" "$1" "$seconds" "$rate" >>"$2" || exit 3
}

# One round, in alternating order: round NUMBER KIND
round() {
	if [ $(($1 % 2)) -eq 0 ]; then
		measure "$2" "$work/$2.without"
	fi
	start_counting
	measure "$2" "$work/$2.with"
	stop_counting
	if [ $(($1 % 2)) -eq 1 ]; then
		measure "$2" "$work/$2.without"
	fi
}

# Prints the overheads, the smallest first: steps a second without the programs / with them - 1.
overheads() {
	paste "$work/$1.without" "$work/$1.with" | awk '{ print (($1 / $3) / ($6 / $8) - 1) * 100 }' | sort -n
}

# Prints the instructions that each event took from the load, the smallest first. Time is instructions, of all CPUs.
costs() {
	paste "$work/$1.without" "$work/$1.with" | awk '{ print (1 - ($6 / $8) / ($1 / $3)) * $8 * 1e9 / $7 }' | sort -n
}

# Prints the time and the number of runs of all programs until now.
programs() {
	cat /proc/"$counter"/fdinfo/* 2>/dev/null | awk '/^run_time_ns/ { time += $2 } /^run_cnt/ { runs += $2 } END { print time, runs }'
}

# Prints the instructions in programs, and their runs, for each event of a load: count_in_programs KIND
# What the load without events and the reading cause, above all page faults of new processes, is subtracted.
count_in_programs() {
	start_counting
	echo 1 >/proc/sys/kernel/bpf_stats_enabled
	programs >"$work/programs"
	for length in 0 "$seconds"; do
		"$load" "$1" "$length" "$rate" >"$work/events" || exit 3
		programs >>"$work/programs"
	done
	echo 0 >/proc/sys/kernel/bpf_stats_enabled
	stop_counting
	cat "$work/programs" "$work/events" | awk '
		NR <= 3 { time[NR] = $1; runs[NR] = $2 }
		NR == 4 {
			print (time[3] - 2 * time[2] + time[1]) / $2, (runs[3] - 2 * runs[2] + runs[1]) / $2, $4 / $2, $5 / $2
		}'
}

# judge_rate KIND: prints the line of a machine with a clock of its own.
judge_rate() {
	reached=$(awk '{ events += $2; time += $3 } END { printf "%.0f", events / time }' "$work/$1.with")
	overheads "$1" | awk -v kind="$1" -v rate="$rate" -v reached="$reached" '
		{ all[NR] = $1 }
		END {
			median = all[int((NR + 1) / 2)]
			if (reached < 0.9 * rate) {
				printf "no result  only %d of %d %s a second were reached\n", reached, rate, kind
				exit 3
			}
			has_goal = kind == "shootdowns" && rate >= 100000
			printf "%s  beside %d %s a second: %.2f %% of the computing (quartiles %.2f to %.2f %%, %d rounds)%s\n",
				!has_goal ? "       " : median < 1 ? "met    " : "NOT MET", reached, kind, median,
				all[int((NR + 3) / 4)], all[int((3 * NR + 3) / 4)], NR, has_goal ? " (goal: below 1 %)" : ""
			exit has_goal && median >= 1
		}'
}

# judge_instructions KIND: prints the line of a guest with a clock that counts instructions.
judge_instructions() {
	counted=$(count_in_programs "$1") || exit 3
	costs "$1" | awk -v kind="$1" -v cpus="$(nproc)" -v counted="$counted" '
		{ all[NR] = $1 }
		END {
			split(counted, each, " ")
			share = each[1] * 100000 / (cpus * 2.5e9) * 100
			has_goal = kind == "shootdowns"
			result = "       "
			if (has_goal)
				result = (share < 1) ? "met    " : "NOT MET"
			printf "%s  %s: %.0f instructions in %.2f runs of programs, %.2f page faults and %.2f TLB interrupts for each, %.2f %% of %d CPUs beside 100,000 a second%s;",
				result, kind, each[1], each[2], each[3], each[4], share, cpus, has_goal ? " (goal: below 1 %)" : ""
			printf " the load lost %.0f (quartiles %.0f to %.0f, %d rounds)\n", all[int((NR + 1) / 2)],
				all[int((NR + 3) / 4)], all[int((3 * NR + 3) / 4)], NR
			exit has_goal && share >= 1
		}'
}

status=0
for kind in shootdowns faults; do
	number=0
	while [ $number -lt "$rounds" ]; do
		round $number $kind
		number=$((number + 1))
	done
	if [ -n "$instructions" ]; then
		judge_instructions $kind || status=$?
	else
		judge_rate $kind || status=$?
	fi
done
exit $status
