package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

func itoa(n int) string { return strconv.Itoa(n) }

// bytesWord is an amount as a person reads it: "4.1 KB".
func bytesWord(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), ""
	for _, u := range []string{"KB", "MB", "GB", "TB"} {
		v, unit = v/1000, u
		if v < 999.5 {
			break
		}
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// tookWord is a duration: "0.02 s", "6.4 s", "3 min".
func tookWord(d time.Duration) string {
	switch {
	case d <= 0:
		return "—"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.2f s", max(0.01, d.Seconds()))
	case d < 60*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

func dataWord(n int64) string {
	if n <= 0 {
		return "—"
	}
	return bytesWord(n)
}

// timeWord is a moment in the log: the time today, with the day before that.
func timeWord(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2 Jan 15:04")
}

func sinceWord(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return "today, " + t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 January")
	}
	return t.Format("2 January 2006")
}

// outcomeChip is an outcome by shape, word and tone.
func outcomeChip(e snapshot.Entry) chip {
	if e.Undone {
		return chip{"○", "Undone", kit.ToneQuiet}
	}
	switch e.Outcome {
	case snapshot.Asking:
		return chip{"▲", "Asks you", kit.ToneWarn}
	case snapshot.Running:
		return chip{"◌", "Running", kit.ToneQuiet}
	case snapshot.Done:
		if e.Left > 0 {
			return chip{"◌", fmt.Sprintf("Done · %d running", e.Left), kit.ToneQuiet}
		}
		if e.CanUndo {
			return chip{"●", "Done · undo", kit.ToneOK}
		}
		return chip{"●", "Done", kit.ToneOK}
	case snapshot.Failed:
		return chip{"■", "Failed", kit.ToneRisk}
	case snapshot.Halted:
		return chip{"■", "Stopped", kit.ToneQuiet}
	case snapshot.Denied:
		return chip{"■", "Denied", kit.ToneRisk}
	case snapshot.Expired:
		return chip{"▲", "No answer", kit.ToneWarn}
	case snapshot.Undelivered:
		return chip{"▲", "Not shown", kit.ToneWarn}
	case snapshot.Cancelled:
		return chip{"○", "Withdrawn", kit.ToneQuiet}
	case snapshot.Allowed:
		return chip{"●", "Allowed", kit.ToneOK}
	}
	return chip{"○", string(e.Outcome), kit.ToneQuiet}
}

// stateMark is the machine's state by shape and tone.
func stateMark(s snapshot.State) (shape string, ink kit.Tone) {
	switch s {
	case snapshot.Online:
		return "●", kit.ToneOK
	case snapshot.Working:
		return "◌", kit.ToneOK
	case snapshot.NeedsYou:
		return "▲", kit.ToneWarn
	case snapshot.Paused:
		return "■", kit.ToneWarn
	case snapshot.SignIn:
		return "▲", kit.ToneRisk
	}
	return "○", kit.ToneQuiet
}

// capital begins a sentence with a capital letter.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}

// stoppedWords say what Stop everything ended.
func stoppedWords(s snapshot.Stopped) string {
	words := "No command was running."
	if s.Commands > 0 {
		words = count(s.Commands, "command", "commands") + " ended."
	}
	return words + " Nothing runs until you resume."
}

// resultWords are what came of an entry, beside its chip.
func resultWords(e snapshot.Entry) string {
	code, ok := strings.CutPrefix(e.Result, "exit code ")
	switch {
	case e.Outcome == snapshot.Allowed: // it is said below
		return ""
	case !ok:
		return e.Result
	case code == "0":
		return ""
	}
	return "ended with error code " + code
}

// toYou makes of what a program is told about the person what the person is
// told.
var toYou = strings.NewReplacer(
	"The person at this computer declined", "You denied",
	"The person declined", "You denied",
	"The person at this computer", "You",
	"The person", "You",
	"the person", "you",
	"they are not asked", "you are not asked",
	"and is not to be asked", "and are not to be asked",
	"until they resume", "until you resume",
	` They can choose "Allow next time" in Activity.`, "",
	"; ask again when they are answered", "",
)

// reasonWords say to the person why an entry ran, or did not.
func reasonWords(e snapshot.Entry, reason string) string {
	switch {
	case e.Outcome == snapshot.Expired && e.CanAllowNext && !e.AllowedNext:
		return "You did not answer in time, so nothing ran. If it may run, choose Allow next time: the same request then runs once without asking."
	case e.Outcome == snapshot.Expired:
		return "You did not answer in time, so nothing ran."
	case e.Outcome == snapshot.Denied && e.By == "you":
		return "" // it is said below
	}
	return capital(toYou.Replace(reason))
}
