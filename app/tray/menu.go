package tray

import (
	"fmt"
	"strings"
	"unicode"

	"localpc/app/snapshot"
)

// The places in the menu, from top to bottom.
const (
	slotState = iota
	slotWaiting
	slotFix
	slotPause
	slotStop
	slotActivity
	slotConnect
	slotPair
	slotQuit
	slots
)

// entry is one place in the menu.
type entry struct {
	label  string
	shown  bool
	intent snapshot.Intent // none for text
}

// view is all that the tray shows; two equal ones look the same.
type view struct {
	icon    string
	tip     string
	entries [slots]entry
}

// look is how a snapshot is shown.
func look(s snapshot.Snapshot) view {
	if s.State == "" {
		s.State = snapshot.Offline
	}
	line := stateLine(s)
	v := view{icon: string(s.State), tip: line}
	v.entries[slotState] = entry{label: line, shown: true}
	v.entries[slotWaiting] = entry{waitingLabel(s.Waiting), s.Waiting > 0, snapshot.Intent{Kind: snapshot.ShowCard}}
	v.entries[slotFix] = fixEntry(s)
	v.entries[slotPause] = entry{"Pause", true, snapshot.Intent{Kind: snapshot.Pause}}
	if s.Paused || s.Stopped != nil {
		v.entries[slotPause] = entry{"Resume", true, snapshot.Intent{Kind: snapshot.Resume}}
	}
	v.entries[slotStop] = entry{"Stop everything", true, snapshot.Intent{Kind: snapshot.StopAll}}
	v.entries[slotActivity] = entry{"Activity", true, snapshot.Intent{Kind: snapshot.ShowWindow, Text: snapshot.WindowActivity}}
	v.entries[slotConnect] = entry{connectLabel(s), s.Hub.Paired, pairWindow}
	v.entries[slotPair] = entry{"Pair…", true, pairWindow}
	switch {
	case s.Hub.Paired:
		v.entries[slotPair] = entry{"Unpair", true, snapshot.Intent{Kind: snapshot.Unpair}}
	case s.Connect.SignIn != nil:
		v.entries[slotPair].label = "Show the sign-in…"
	}
	v.entries[slotQuit] = entry{"Quit", true, snapshot.Intent{Kind: snapshot.Quit}}
	return v
}

// pairWindow is the window for pairing, for a sign-in on its way, and for what
// is next.
var pairWindow = snapshot.Intent{Kind: snapshot.ShowWindow, Text: snapshot.WindowPair}

// connectLabel is where that window leads from a computer that is paired.
func connectLabel(s snapshot.Snapshot) string {
	switch {
	case s.Connect.SignIn != nil:
		return "Show the sign-in…"
	case s.State == snapshot.SignIn || s.Fix == snapshot.Pair:
		return "Sign in again…"
	case s.Hub.Kind == "autogpt":
		return "Use in AutoGPT…"
	}
	return "Connect a program…"
}

// stateLine is the state in a few words, and whose machine this is.
func stateLine(s snapshot.Snapshot) string {
	line := plain(s.Line, 48)
	switch {
	case s.Connect.SignIn != nil && s.Waiting == 0:
		line = "Signing in…"
	case line == "":
		line = stateWord(s.State)
	}
	if name := plain(s.Machine, 24); name != "" {
		line += " · " + name
	}
	return line
}

// stateWord names a state where the snapshot has no words of its own.
func stateWord(s snapshot.State) string {
	switch s {
	case snapshot.Online:
		return "Online"
	case snapshot.Working:
		return "Working"
	case snapshot.NeedsYou:
		return "Needs you"
	case snapshot.Paused:
		return "Paused"
	case snapshot.SignIn:
		return "Sign in again"
	}
	return "Offline"
}

func waitingLabel(n int) string { return fmt.Sprintf("%d waiting: show", max(n, 0)) }

// fixEntry is what mends a problem, unless the menu has that already.
func fixEntry(s snapshot.Snapshot) entry {
	label := plain(s.FixLabel, 40)
	switch s.Fix {
	case "", snapshot.Pair, snapshot.Unpair, snapshot.Pause, snapshot.Resume, snapshot.ShowCard, snapshot.Quit:
		return entry{}
	}
	return entry{label, label != "", snapshot.Intent{Kind: s.Fix}}
}

// plain makes text of other people fit for a menu: no control or direction
// marks, one line, at most limit characters.
func plain(s string, limit int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = n > 0
			continue
		}
		if !unicode.IsPrint(r) { // also the marks that turn text around
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n++; n > limit {
			return strings.TrimSpace(b.String()) + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}
