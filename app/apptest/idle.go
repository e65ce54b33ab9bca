//go:build linux

package apptest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Cost is what a process costs while nothing happens.
type Cost struct {
	Resident int64 // bytes of memory it has in use, shared ones too
	Share    int64 // the same with shared bytes divided among who shares them
	// Wakeups is how often per second its threads were switched to: 0 when it
	// truly sleeps.
	Wakeups float64
}

func (c Cost) String() string {
	return fmt.Sprintf("%.1f MB resident, %.1f MB its share, %.2f wake-ups a second",
		float64(c.Resident)/1e6, float64(c.Share)/1e6, c.Wakeups)
}

// Idle watches a process for a while without touching it.
func Idle(pid int, during time.Duration) (Cost, error) {
	before, err := switches(pid)
	if err != nil {
		return Cost{}, err
	}
	start := time.Now()
	time.Sleep(during)
	took := time.Since(start)
	after, err := switches(pid)
	if err != nil {
		return Cost{}, err
	}
	memory, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Cost{}, err
	}
	return Cost{
		Resident: field(string(memory), "Rss:") << 10,
		Share:    field(string(memory), "Pss:") << 10,
		Wakeups:  float64(after-before) / took.Seconds(),
	}, nil
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
