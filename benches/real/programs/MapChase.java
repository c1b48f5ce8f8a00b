// SPDX-License-Identifier: MIT OR Apache-2.0
import java.util.HashMap;

/** Dependent look-ups in a HashMap: MapChase [ENTRIES] [LOOKUPS]. */
public final class MapChase {
    private static long scramble(long x) {
        x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
        x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
        return x ^ (x >>> 31);
    }

    public static void main(String[] args) {
        int entries = args.length > 0 ? Integer.parseInt(args[0]) : 1_000_000;
        int lookups = args.length > 1 ? Integer.parseInt(args[1]) : 1_000_000;
        HashMap<Long, Long> map = new HashMap<>();
        for (long i = 0; i < entries; i++) {
            map.put(scramble(i), i);
        }
        long sum = 0;
        long next = 1;
        for (int i = 0; i < lookups; i++) {
            long found = map.get(scramble(Long.remainderUnsigned(next, entries)));
            sum += found;
            next = scramble(next + found);
        }
        System.out.println(sum);
    }
}
