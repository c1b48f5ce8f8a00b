// SPDX-License-Identifier: MIT OR Apache-2.0

// A service that looks up random keys in a map of 4 million entries, without an end:  cache LOG
// LOG gets the process id when the map is full, and a line for each 20,000 look-ups.
package main

import (
	"fmt"
	"math/rand"
	"os"
)

const (
	entries = 4_000_000
	round   = 20_000
)

func main() {
	table := make(map[uint64][4]uint64, entries)
	for key := uint64(0); key < entries; key++ {
		table[key] = [4]uint64{key, key, key, key}
	}
	log, err := os.Create(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(log, os.Getpid())
	random := rand.New(rand.NewSource(1))
	for {
		sum := uint64(0)
		for i := 0; i < round; i++ {
			sum += table[uint64(random.Intn(entries))][0]
		}
		fmt.Fprintln(log, sum)
	}
}
