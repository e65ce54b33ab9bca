package apptest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Idle watches a process for d without touching it. It returns its resident
// memory in bytes at the end and how often per second its threads were
// switched to (voluntary and other switches): 0 when it truly sleeps.
func Idle(pid int, d time.Duration) (rss int64, wakeupsPerSecond float64, err error) {
	before, err := switches(pid)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	time.Sleep(d)
	took := time.Since(start)
	after, err := switches(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	kb := field(string(status), "VmRSS:")
	return kb << 10, float64(after-before) / took.Seconds(), nil
}

// switches sums the context switches of all threads.
func switches(pid int) (int64, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, t := range tasks {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/status")
		if err != nil {
			continue // a thread that has just ended
		}
		sum += field(string(b), "voluntary_ctxt_switches:") + field(string(b), "nonvoluntary_ctxt_switches:")
	}
	return sum, nil
}

// field reads the number after a name at the start of a line.
func field(status, name string) int64 {
	for _, line := range strings.Split(status, "\n") {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				n, _ := strconv.ParseInt(f[0], 10, 64)
				return n
			}
		}
	}
	return 0
}
