package display

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
)

// BenchmarkInputTable is a part of "make bench": how long a click and a text
// take until another program has them, against xdotool, whose start is part of it, in the same run.
func BenchmarkInputTable(b *testing.B) {
	name := xvfb(b, "800x600")
	h := openAt(b, name)
	w := watch(b, name, "800x600")
	const rounds = 15
	sees := func(what string) {
		for end := time.Now().Add(patience); ; {
			w.mu.Lock()
			there := slices.ContainsFunc(w.seen, func(s string) bool { return strings.HasPrefix(s, what) })
			w.mu.Unlock()
			if there {
				w.take(nil)
				return
			}
			if time.Now().After(end) {
				b.Fatalf("%q did not come", what)
			}
			time.Sleep(200 * time.Microsecond)
		}
	}
	median := func(do func(n int)) time.Duration {
		var all []time.Duration
		for n := range rounds {
			began := time.Now()
			do(n)
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[rounds/2]
	}
	click := median(func(n int) {
		act(b, h, hands.Action{Kind: hands.Click, At: &image.Point{X: 10 + n, Y: 20}})
		sees(fmt.Sprintf("release 1 @ %d,20", 10+n))
	})
	xclick := median(func(n int) {
		run(b, name, "xdotool", "mousemove", fmt.Sprint(10+n), "40", "click", "1")
		sees(fmt.Sprintf("release 1 @ %d,40", 10+n))
	})

	f := filepath.Join(b.TempDir(), "text")
	start(b, name, "env", "LC_ALL=C.UTF-8", "xterm", "-u8", "-geometry", "200x100+0+0", "-e", "stty raw -echo; exec cat >"+f)
	eventually(b, "xterm", func() bool {
		act(b, h, hands.Action{Kind: hands.Type, Text: "."})
		got, _ := os.ReadFile(f)
		return len(got) > 0
	})
	time.Sleep(time.Second)
	text := strings.Repeat("Hello (World); ", 7)[:100]
	typed := func(with func()) time.Duration {
		var all []time.Duration
		for range 3 {
			if err := os.Truncate(f, 0); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			with()
			eventually(b, "the text", func() bool {
				got, _ := os.ReadFile(f)
				return strings.Trim(string(got), "\x00") == text
			})
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[1]
	}
	typing := typed(func() { act(b, h, hands.Action{Kind: hands.Type, Text: text}) })
	xtyping := typed(func() { run(b, name, "xdotool", "type", text) })
	row := func(what string, ours, theirs time.Duration) {
		fmt.Printf("| %-48s | %9s | %9s | %5.2f |\n", what, ours.Round(10*time.Microsecond), theirs.Round(10*time.Microsecond), float64(ours)/float64(theirs))
	}
	fmt.Printf("\n| %-48s | %9s | %9s | %5s |\n", "until another program has it", "localpc", "xdotool", "ratio")
	row("move and click", click, xclick)
	row("type 100 characters", typing, xtyping)
	b.ReportMetric(float64(click)/float64(xclick), "click/xdotool")
	b.ReportMetric(float64(typing)/float64(xtyping), "type/xdotool")
}
