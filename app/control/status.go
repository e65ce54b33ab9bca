package control

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// WriteStatus writes for a terminal what goes on: the state, the hub, a sign-in
// on its way, what is wrong, and the open sessions.
func WriteStatus(w io.Writer, s snapshot.Snapshot, now time.Time) {
	v := func(t string) string { return consent.Visible(t, false) }
	line := s.Line
	if s.Connect.SignIn != nil && s.Waiting == 0 {
		line = "Signing in…"
	}
	fmt.Fprintf(w, "%s: %s\n", v(s.Machine), v(line))
	if s.Hub.Paired {
		fmt.Fprintln(w, PairedWords(s.Hub))
		if s.Hub.SignIn != "" {
			fmt.Fprintln(w, "Sign-in:", v(s.Hub.SignIn))
		}
		if s.Hub.Proxy != "" {
			fmt.Fprintln(w, "Through the proxy", v(s.Hub.Proxy))
		}
	}
	if s.Secrets != "" {
		fmt.Fprintln(w, "Secrets are kept", v(s.Secrets))
	}
	if s.Policy != "" {
		fmt.Fprintln(w, "Answered beforehand by", v(s.Policy))
	}
	if s.Problem != "" {
		fmt.Fprintln(w, v(s.Problem))
	}
	switch {
	case s.Connect.SignIn != nil:
		WriteSignIn(w, *s.Connect.SignIn, now)
	case s.Connect.PairError != "":
		fmt.Fprintln(w, "Pairing failed:", v(s.Connect.PairError))
	}
	for _, t := range append(slices.Clone(s.Standing), s.Warnings...) {
		fmt.Fprintln(w, "!", v(t))
	}
	for _, e := range s.Sessions {
		fmt.Fprintf(w, "%s · %s · %s · until %s · %d running", v(e.Principal), v(e.Folder), v(e.Mode), e.Until.Local().Format(time.TimeOnly), e.Running)
		if left := e.TrustedUntil.Sub(now); !now.IsZero() && !e.TrustedUntil.IsZero() && left > 0 {
			fmt.Fprintf(w, " · trusted for %s more", clock(left))
		}
		if e.Denied > 0 {
			fmt.Fprintf(w, " · %d declined in a row", e.Denied)
		}
		fmt.Fprintln(w)
	}
}

// PairedWords say in one line whom this computer is paired with, and what to do
// to be asked by a program.
func PairedWords(h snapshot.Hub) string {
	v := func(t string) string { return consent.Visible(t, false) }
	name, address := v(h.Name), v(h.Address)
	if name == "" {
		name, address = address, ""
	}
	words := "Paired with " + name
	if h.Kind == "this" {
		words = "Paired, for programs on this computer only"
	}
	if h.Account != "" {
		words += " as " + v(h.Account)
	}
	if address != "" && address != name {
		words += " (" + address + ")"
	}
	switch {
	case !h.Online: // no program can ask now
	case h.Kind == "own" && h.Address != "":
		words += ". Keys for programs are made at " + v(strings.TrimSuffix(h.Address, "/")) + "/keys"
	case h.Kind == "autogpt":
		words += ". Choose this computer in a chat there."
	}
	return words
}

// WriteSignIn writes how far a sign-in is, and what the person does next: the
// page to open, and the number to compare or the code to type there. Until
// when it waits is left out for a zero now.
func WriteSignIn(w io.Writer, s snapshot.SigningIn, now time.Time) {
	v := func(t string) string { return consent.Visible(t, false) }
	switch s.Stage {
	case snapshot.SignInBrowser:
		fmt.Fprintf(w, "Open this page in a browser on this computer:\n\n    %s\n\n", v(s.URL))
		if s.Match != "" {
			fmt.Fprintf(w, "Check that it shows  %s  and agree there. If it shows another number, do not agree.\n", v(s.Match))
		} else {
			fmt.Fprintln(w, "Sign in there, and agree that this computer may be used.")
		}
	case snapshot.SignInCode:
		fmt.Fprintf(w, "Open this page on any device:\n\n    %s\n\nand type this code there:\n\n    %s\n\n", v(s.URL), v(s.UserCode))
		fmt.Fprintln(w, "The page then names this computer. Agree only if it is this one.")
	case snapshot.SignInFinishing:
		fmt.Fprintln(w, "You have agreed. This computer fetches its sign-in.")
	default:
		fmt.Fprintf(w, "Signing in to %s: asking how.\n", v(s.Hub))
	}
	if left := s.Until.Sub(now); !now.IsZero() && !s.Until.IsZero() && left > 0 && s.Stage != snapshot.SignInFinishing {
		fmt.Fprintf(w, "It waits until %s.\n", s.Until.Local().Format("15:04")) // what is written stays as it is
	}
}

// clock is a time that runs down: "9:41".
func clock(left time.Duration) string {
	left = left.Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(left.Minutes()), int(left.Seconds())%60)
}
