// Localpc-desktop is all that touches the display. Localpc starts it, and talks
// to it over its standard input and output. It is two processes of one program:
// without an argument it draws cards and windows (steps 4 and 7); with "hands"
// (and a file where it keeps what the system gives it) it takes pictures, and has mouse and keyboard (step 5), so that a crash of
// what other people's libraries do there never takes a card along.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"localpc/app/desklink"
	"localpc/app/ui"
	"localpc/capabilities/computer/display"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	run := cards
	switch {
	case len(os.Args) > 1 && len(os.Args) < 4 && os.Args[1] == "hands":
		run = func() error { return hands(strings.Join(os.Args[2:], "")) }
	case len(os.Args) > 1:
		byHand()
	}
	err := run()
	if errors.Is(err, desklink.ErrByHand) {
		byHand()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "localpc-desktop:", err)
		os.Exit(1)
	}
}

func byHand() {
	fmt.Fprintln(os.Stderr, "localpc-desktop is started by localpc and draws its windows. Run localpc instead.")
	os.Exit(2)
}

func cards() error {
	link, err := desklink.OpenChild()
	if err != nil {
		return err
	}
	ui.Run(link)
	return nil
}

// hands ends with its link, and lets go of everything then. What ends localpc
// from a terminal comes to this process too, and must not keep it from that.
func hands(kept string) error {
	in, out, err := desklink.OpenLink()
	if err != nil {
		return err
	}
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	h, err := display.Open(ctx, display.Options{Kept: display.KeptIn(kept)})
	if err != nil {
		return err
	}
	return desklink.ServeHands(ctx, in, out, h)
}
