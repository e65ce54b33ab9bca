package display

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"localpc/tunnel/wire"
)

// copies has xclip hold text as target until the test ends.
func copies(t *testing.T, name, target, text string) {
	t.Helper()
	cmd := exec.Command("xclip", "-selection", "clipboard", "-quiet", "-target", target, "-in", "-display", name)
	cmd.Stdin = strings.NewReader(text)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

func pastes(t *testing.T, name string) string {
	return run(t, name, "xclip", "-selection", "clipboard", "-target", "UTF8_STRING", "-out")
}

func TestClipboard(t *testing.T) {
	name := xvfb(t, "320x240")
	h := openAt(t, name)
	if c, err := h.ReadClipboard(within(t), 100); err != nil || c.Text != "" || c.Owned {
		t.Fatalf("an empty clipboard is %+v, %v", c, err)
	}
	long := strings.Repeat("0123456789 héllo 世界 😀\n", 40_000)
	for what, text := range map[string]string{"short": "Grüße, 世界 😀", "long": long, "nothing": ""} {
		if err := h.WriteClipboard(within(t), text); err != nil {
			t.Fatal(err)
		}
		if got := pastes(t, name); got != text {
			t.Errorf("%s: a program pasted %d bytes of %d", what, len(got), len(text))
		}
		if c, err := h.ReadClipboard(within(t), 2<<20); err != nil || c.Text != text || !c.Owned {
			t.Errorf("%s: read back %d bytes, owned %v, %v", what, len(c.Text), c.Owned, err)
		}
	}
	for what, text := range map[string]string{"short": "von Hand kopiert ✂", "long": long} {
		copies(t, name, "UTF8_STRING", text)
		eventually(t, what+" text of another program", func() bool {
			c, err := h.ReadClipboard(within(t), 2<<20)
			return err == nil && c.Text == text && !c.Owned
		})
	}
	for _, max := range []int{1000, 200_000} {
		if _, err := h.ReadClipboard(within(t), max); wire.CodeOf(err) != wire.CodeTooLarge {
			t.Errorf("more than %d bytes: %v", max, err)
		}
	}
	copies(t, name, "image/png", "\x89PNG")
	eventually(t, "the refusal of a picture", func() bool {
		_, err := h.ReadClipboard(within(t), 1000)
		return wire.CodeOf(err) == wire.CodeNotSupported
	})
	copies(t, name, secretHint, "secret")
	eventually(t, "the refusal of a secret", func() bool {
		_, err := h.ReadClipboard(within(t), 1000)
		return wire.CodeOf(err) == wire.CodeConcealed
	})
}

// TestClipboardOwnerThatSleeps plays a program that was stopped.
func TestClipboardOwnerThatSleeps(t *testing.T) {
	name := xvfb(t, "320x240")
	h := openAt(t, name)
	c, err := dialX11(name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	w, err := xproto.NewWindowId(c.Conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := xproto.CreateWindowChecked(c.Conn, 0, w, c.root, 0, 0, 1, 1, 0, xproto.WindowClassInputOnly, 0, 0, nil).Check(); err != nil {
		t.Fatal(err)
	}
	if err := xproto.SetSelectionOwnerChecked(c.Conn, w, c.atom("CLIPBOARD"), 0).Check(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := h.ReadClipboard(within(t), 1000); wire.CodeOf(err) != wire.CodeNotSupported || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begun = time.Now()
	if _, err := h.ReadClipboard(ctx, 1000); err == nil || time.Since(begun) > clipWait {
		t.Errorf("a caller that gave up waited %v: %v", time.Since(begun), err)
	}
	if err := h.WriteClipboard(within(t), "mine"); err != nil {
		t.Fatal(err)
	}
	if got := pastes(t, name); got != "mine" {
		t.Errorf("pasted %q", got)
	}
}
