package ui

import (
	"fmt"
	"os"
	"strings"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
)

// leftWord is how long something still holds, ticking: "11:24 left".
func leftWord(until, now time.Time) string {
	left := until.Sub(now)
	if left <= 0 {
		return "ended"
	}
	s := int((left + time.Second - 1) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d left", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d left", s/60, s%60)
}

// agoWord is how long ago something was: "now", "2 min ago", "never".
func agoWord(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	switch ago := now.Sub(t); {
	case ago < time.Minute:
		return "now"
	case ago < time.Hour:
		return fmt.Sprintf("%d min ago", int(ago.Minutes()))
	case ago < 24*time.Hour:
		return count(int(ago.Hours()), "hour", "hours") + " ago"
	case ago < 60*24*time.Hour:
		return count(int(ago.Hours()/24), "day", "days") + " ago"
	}
	return dayWord(t, now)
}

// dayWord is a day: "30 Dec", with its year where that is another one.
func dayWord(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() || t.Sub(now).Abs() < 200*24*time.Hour {
		return t.Format("2 Jan")
	}
	return t.Format("2 Jan 2006")
}

// ticks says whether the end of a grant is counted down.
func ticks(g snapshot.Grant, now time.Time) bool {
	return !g.Until.IsZero() && !always(g) && g.Until.Sub(now) < 24*time.Hour && g.Until.After(now)
}

func always(g snapshot.Grant) bool { return strings.EqualFold(g.Scope, string(consent.Always)) }

// untilWords say how long a grant holds, and in a second line what else ends
// it.
func untilWords(g snapshot.Grant, now time.Time) (first, second string) {
	switch {
	case always(g):
		end := g.Until
		if end.IsZero() && !g.LastUsed.IsZero() {
			end = g.LastUsed.Add(consent.UnusedFor)
		}
		if end.IsZero() {
			return "always", "ends if unused for 30 days"
		}
		return "always", "ends if unused until " + dayWord(end, now)
	case !g.Until.IsZero() && g.Until.Sub(now) >= 24*time.Hour:
		return "until " + dayWord(g.Until, now), ""
	case !g.Until.IsZero():
		return leftWord(g.Until, now), ""
	case g.Session != "":
		return "session ends", ""
	}
	return g.Scope, ""
}

// visible is a word that came from elsewhere, for a control that draws
// it as it is.
func visible(s string) string { return consent.Visible(s, false) }

// homeDir is where a picker begins.
func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	return "/"
}
