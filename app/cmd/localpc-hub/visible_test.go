package main

import (
	"testing"
	"unicode/utf8"

	"localpc/consent"
	"localpc/tunnel/hub/web"
)

// What a page writes out is what a card and a terminal write out: one name
// looks the same wherever a person meets it.
func TestPagesShowWhatCardsShow(t *testing.T) {
	same := func(s string) {
		t.Helper()
		if page, card := web.Visible(s), consent.Visible(s, false); page != card {
			t.Errorf("%+q is %+q on a page, and %+q on a card", s, page, card)
		}
	}
	for r := rune(0); r <= utf8.MaxRune && !t.Failed(); r++ {
		same("a" + string(r) + "b")
	}
	for b := range 256 {
		same("a" + string([]byte{byte(b)}) + "b")
	}
	same("\xe2\x80")
}
