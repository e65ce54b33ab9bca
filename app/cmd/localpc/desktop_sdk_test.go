//go:build linux

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The calls of @e2b/desktop as published work on a screen of the program's own,
// in the session's container and with no card after the first: a terminal in it
// writes down what reaches it, and the pictures show it. The person's screen is
// not reached from there.
func TestDesktopSDK(t *testing.T) {
	t.Parallel()
	p, folder := lent(t)
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	// Raw, with every button and its motion told as text: ESC [ < button ; column ; row, M or m.
	write("watch", "#!/bin/sh\nstty raw -echo\nprintf '\\033[?1002h\\033[?1006h'\ntouch ready\nexec cat > got\n", 0o755)
	write("reader", "#!/bin/sh\ncat \"$1\" > shown\nexec sleep 600\n", 0o755)
	write("note.txt", "read me\n", 0o644)
	const entry = "[Desktop Entry]\nType=Application\nName=%s\nExec=%s\nMimeType=text/plain;\n"
	write(".local/share/applications/watch.desktop", fmt.Sprintf(entry, "Watch", "xterm -class Watch -T Listening -bg green -geometry 40x10+100+100 -e /home/user/watch"), 0o644)
	write(".local/share/applications/reader.desktop", fmt.Sprintf(entry, "Reader", "xterm -class Reader -T Reading -geometry 40x10+300+350 -e /home/user/reader %f"), 0o644)
	write(".config/mimeapps.list", "[Default Applications]\ntext/plain=reader.desktop\n", 0o644)
	p.d.Give(folder)
	var persons string
	for _, e := range p.d.Env() {
		if v, ok := strings.CutPrefix(e, "DISPLAY="); ok {
			persons = v
		}
	}
	cmd := exec.Command("xdpyinfo", "-display", persons)
	if cmd.Env = p.d.Env(); cmd.Run() != nil {
		t.Fatalf("the person's own display %q cannot be reached", persons)
	}
	var got struct {
		Up, Ready, Watches, Focused, Opens      bool
		Size                                    struct{ Width, Height int }
		Before, After                           []byte
		Windows                                 []string
		Title, Opened, Shown                    string
		Window, At                              []int
		Cursor                                  image.Point
		Left, Right, Middle, Double, Up1, Down2 string
		Drag, Typed, Chord, Key                 string
		Own, Others                             int
	}
	script(t, "desktop.mjs", "@e2b/desktop", p.key("Desktop"), &got, persons)
	if !got.Up || !got.Ready || !got.Watches || !got.Focused || got.Title != "Listening" {
		t.Fatalf("the windows: %+v", got)
	}
	for what, is := range map[string][2]string{
		"left click":   {got.Left, "\x1b[<0;7;4M\x1b[<0;7;4m"},
		"right click":  {got.Right, "\x1b[<2;7;4M\x1b[<2;7;4m"},
		"middle click": {got.Middle, "\x1b[<1;7;4M\x1b[<1;7;4m"},
		"double click": {got.Double, "\x1b[<0;7;4M\x1b[<0;7;4m\x1b[<0;7;4M\x1b[<0;7;4m"},
		"scroll up":    {got.Up1, "\x1b[<64;7;4M"},
		"scroll down":  {got.Down2, "\x1b[<65;7;4M\x1b[<65;7;4M"},
		"drag":         {got.Drag, "\x1b[<0;7;4M\x1b[<32;20;8M\x1b[<0;20;8m"},
		"write, press": {got.Typed, "hello 'you' $HOME\r"},
		"press two":    {got.Chord, "A"},
		"press":        {got.Key, "\x1b"},
		"open":         {got.Opened + ": " + got.Shown, "Reading: read me\n"},
	} {
		if is[0] != is[1] {
			t.Errorf("%s: %q, want %q", what, is[0], is[1])
		}
	}
	if len(got.At) != 2 || got.Cursor != image.Pt(got.At[0], got.At[1]) {
		t.Errorf("the pointer is at %v, not at %v", got.Cursor, got.At)
	}
	// The terminal's ground is the green there, and none was there before.
	w := image.Rect(got.Window[0], got.Window[1], got.Window[0]+got.Window[2], got.Window[1]+got.Window[3])
	for what, c := range map[string]struct {
		png  []byte
		want bool
	}{"before": {got.Before, false}, "after": {got.After, true}} {
		img, err := png.Decode(bytes.NewReader(c.png))
		if err != nil || img.Bounds().Size() != image.Pt(800, 600) || got.Size.Width != 800 || got.Size.Height != 600 {
			t.Errorf("the picture %s: %v, of a screen of %+v", what, err, got.Size)
			continue
		}
		green := 0
		for x := w.Min.X; x < w.Max.X; x++ {
			if (color.RGBAModel.Convert(img.At(x, w.Max.Y-8)) == color.RGBA{G: 255, A: 255}) {
				green++
			}
		}
		if (green > w.Dx()*9/10) != c.want || !c.want && green > 0 {
			t.Errorf("the picture %s has %d of %d green", what, green, w.Dx())
		}
	}
	if got.Own != 0 || got.Others == 0 {
		t.Errorf("its own screen: %d, the person's: %d", got.Own, got.Others)
	}
}
