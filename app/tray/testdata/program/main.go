// Command program is the tray alone, for the tests: it draws the snapshots
// that come as lines of JSON on its standard input, and prints what happens.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"localpc/app/snapshot"
	"localpc/app/tray"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	t := tray.New(tray.Options{
		Intent: func(i snapshot.Intent) {
			fmt.Println(strings.TrimSpace(fmt.Sprint("intent ", i.Kind, " ", i.Text, " ", i.Way)))
			if i.Kind == snapshot.Quit {
				stop()
			}
		},
		Host: func(present bool) { fmt.Println("host", present) },
	})
	n := tray.NewNotifier(tray.NotifierOptions{Show: func() { fmt.Println("notification clicked") }})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			if text, ok := strings.CutPrefix(in.Text(), "notify "); ok {
				title, body, _ := strings.Cut(text, "|")
				n.Show(title, body)
				continue
			}
			if in.Text() == "hide" {
				n.Hide()
				continue
			}
			var s snapshot.Snapshot
			if err := json.Unmarshal(in.Bytes(), &s); err != nil {
				fmt.Println("bad line", err)
				continue
			}
			t.Update(s)
		}
	}()
	t.Run(ctx)
	n.Close()
	fmt.Println("ended")
}
