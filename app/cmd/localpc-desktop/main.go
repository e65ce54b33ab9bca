// Localpc-desktop draws the cards and windows of localpc, which starts it and
// talks to it over its standard input and output.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"localpc/app/desklink"
	"localpc/app/ui"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	link, err := desklink.OpenChild()
	if errors.Is(err, desklink.ErrByHand) {
		fmt.Fprintln(os.Stderr, "localpc-desktop is started by localpc and draws its windows. Run localpc instead.")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "localpc-desktop:", err)
		os.Exit(1)
	}
	ui.Run(link)
}
