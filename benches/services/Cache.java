// SPDX-License-Identifier: MIT OR Apache-2.0
// A service that looks up random keys in a HashMap of 2 million entries, without an end:  java Cache.java LOG
// LOG gets the process id when the map is full, and a line for each 20,000 look-ups.
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.SplittableRandom;

public class Cache {
    private static final int ENTRIES = 2_000_000;
    private static final int ROUND = 20_000;

    public static void main(String[] arguments) throws IOException {
        HashMap<Integer, long[]> map = new HashMap<>();
        for (int key = 0; key < ENTRIES; key++) {
            map.put(key, new long[] {key, key, key, key});
        }
        SplittableRandom random = new SplittableRandom(1);
        try (FileOutputStream log = new FileOutputStream(arguments[0])) {
            log.write((ProcessHandle.current().pid() + "\n").getBytes());
            while (true) {
                long sum = 0;
                for (int i = 0; i < ROUND; i++) {
                    sum += map.get(random.nextInt(ENTRIES))[0];
                }
                log.write((sum + "\n").getBytes());
            }
        }
    }
}
