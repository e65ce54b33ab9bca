package machine

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"localpc/tunnel/wire"
)

// metricsNotes are for the log.
var metricsNotes []string

// readCounters reads /proc/stat: hundredths of a second since the start, by
// what they were spent on.
func readCounters() counters {
	data, _ := os.ReadFile("/proc/stat")
	return countersOf(data, time.Now())
}

func countersOf(stat []byte, now time.Time) counters {
	c := counters{when: now}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	for i, f := range strings.Fields(string(line)) {
		n, err := strconv.ParseUint(f, 10, 64)
		if i == 0 || i > 8 || err != nil {
			continue // the name; and guests, which are counted as users' time
		}
		c.total += n
		if i != 4 && i != 5 { // idle, and idle while a disk works
			c.busy += n
		}
	}
	return c
}

// readMemory reads /proc/meminfo, and how many processors there are.
func readMemory(s *wire.Sample) {
	data, _ := os.ReadFile("/proc/meminfo")
	memoryOf(data, s)
	stat, _ := os.ReadFile("/proc/stat")
	s.CPUs = bytes.Count(stat, []byte("\ncpu"))
}

func memoryOf(meminfo []byte, s *wire.Sample) {
	kB := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(meminfo)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if f := strings.Fields(rest); len(f) > 0 {
			kB[name], _ = strconv.ParseInt(f[0], 10, 64)
		}
	}
	s.MemTotal = kB["MemTotal"] << 10
	s.MemUsed = max(0, kB["MemTotal"]-kB["MemAvailable"]) << 10
	s.MemCache = (kB["Cached"] + kB["Buffers"] + kB["SReclaimable"]) << 10
}

// diskOf is the disk that a folder is on; zero where it does not tell.
func diskOf(folder string) disk {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return disk{}
	}
	size := int64(st.Bsize)
	return disk{total: int64(st.Blocks) * size, used: int64(st.Blocks-st.Bfree) * size}
}
