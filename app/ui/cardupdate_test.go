package ui

import (
	"testing"

	"localpc/consent"
)

// News of a card that has been answered at that moment do not bring it back.
func TestAnUpdateOpensNoCard(t *testing.T) {
	s := newStage(t)
	c := s.replacing(3)
	s.card(c).answer(false, consent.Choice{Scope: consent.Once})
	late := c
	late.Folded, late.Update = c.Folded[1:], true
	s.show(late)
	if s.u.card.now != nil {
		t.Error("it is on the screen again")
	}
	o := s.card(s.command("another"))
	s.show(late)
	if s.u.card.now != o {
		t.Error("it takes the place of the next card")
	}
}
