//go:build unix

package mcp

import (
	"testing"
	"time"

	"localpc/tunnel/hub/store"
)

// Who does not say which conversation it is aims at the last picture of its key
// for a short time only: after that it may be another one's. No conversation gets
// what was another's, another program's or an earlier session's.
func TestHowLongAPictureIsTheLast(t *testing.T) {
	f := &Face{looks: map[lookOf]look{}, lookFor: time.Hour}
	b := store.Sandbox{ID: "s1", Machine: "m"}
	nobody, chat := lookOf{"key", "m", ""}, lookOf{"key", "m", "chat"}
	f.setLook(nobody, b, Picture{ID: "a"})
	f.setLook(chat, b, Picture{ID: "b"})
	for of, want := range map[lookOf]string{nobody: "a", chat: "b", {"key", "m", "other"}: "", {"other", "m", "chat"}: "", {"key", "n", "chat"}: ""} {
		if p, ok := f.lastLook(of, b); ok != (want != "") || ok && p.ID != want {
			t.Errorf("the last picture of %+v is %q, %v", of, p.ID, ok)
		}
	}
	if _, ok := f.lastLook(chat, store.Sandbox{ID: "s2", Machine: "m"}); ok {
		t.Error("a picture outlives its session")
	}
	f.lookFor = 0
	if _, ok := f.lastLook(nobody, b); ok {
		t.Error("an old picture is the last still, of whoever asks")
	}
	if _, ok := f.lastLook(chat, b); !ok {
		t.Error("a conversation's own picture has become old")
	}
	for n := range maxLooks {
		f.setLook(lookOf{"key", "m", string(rune('A' + n))}, b, Picture{})
	}
	if len(f.looks) > maxLooks {
		t.Errorf("%d pictures are known", len(f.looks))
	}
}
