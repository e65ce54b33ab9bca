package display

import (
	"encoding/json"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
)

// managed starts a server with a window manager.
func managed(t testing.TB, size string) string {
	t.Helper()
	name := startX(t, "Xvfb", "-screen", "0", size+"x24")
	start(t, name, "openbox", "--sm-disable")
	eventually(t, "the window manager", func() bool {
		return exec.Command("xprop", "-display", name, "-root", "_NET_SUPPORTING_WM_CHECK").Run() == nil &&
			strings.Contains(run(t, name, "xprop", "-root", "_NET_SUPPORTING_WM_CHECK"), "window id")
	})
	return name
}

// taker is a program that writes down the text it gets.
type taker struct {
	file, title string
	cmd         *exec.Cmd
}

// takers start the programs that text is typed into; they have the keyboard
// when they return.
var takers = map[string]func(t testing.TB, name string) taker{
	"gtk": func(t testing.TB, name string) taker {
		f := filepath.Join(t.TempDir(), "text")
		return taker{f, "gtk entry", start(t, name, "env", "GTK_IM_MODULE=gtk-im-context-simple", "GTK_A11Y=none", "NO_AT_BRIDGE=1", "LC_ALL=C.UTF-8", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere", "/usr/bin/python3", "testdata/gtkentry.py", f)}
	},
	"xterm": func(t testing.TB, name string) taker {
		f := filepath.Join(t.TempDir(), "text")
		return taker{f, "xterm entry", start(t, name, "env", "LC_ALL=C.UTF-8", "xterm", "-u8", "-T", "xterm entry", "-e", "stty raw -echo; exec cat >"+f)}
	},
	"fyne": func(t testing.TB, name string) taker {
		dir := t.TempDir()
		build := exec.Command("go", "build", "-tags", "gles", "-o", filepath.Join(dir, "entry"), "./testdata/fyneentry")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		f := filepath.Join(dir, "text")
		return taker{f, "fyne entry", start(t, name, "env", "LC_ALL=C.UTF-8", "HOME="+dir, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere", filepath.Join(dir, "entry"), f)}
	},
}

// take starts a taker and gives it the keyboard by a click.
func take(t testing.TB, h hands.Hands, name, kind string) taker {
	t.Helper()
	w := takers[kind](t, name)
	var at image.Point
	eventually(t, kind+" on the screen", func() bool {
		s, err := h.Windows(within(t))
		for _, win := range s {
			if win.Title == w.title && !win.Frame.Empty() {
				at = image.Pt((win.Frame.Min.X+win.Frame.Max.X)/2, (win.Frame.Min.Y+win.Frame.Max.Y)/2)
				return true
			}
		}
		return err != nil
	})
	time.Sleep(300 * time.Millisecond)
	eventually(t, "the keyboard in "+kind, func() bool {
		act(t, h, hands.Action{Kind: hands.Click, At: &at})
		act(t, h, hands.Action{Kind: hands.Type, Text: "."})
		for range 25 {
			if w.text() == "." {
				return true
			}
			time.Sleep(20 * time.Millisecond)
		}
		return false
	})
	return w
}

func (w taker) text() string {
	b, _ := os.ReadFile(w.file)
	return string(b)
}

func act(t testing.TB, h hands.Hands, a hands.Action) {
	t.Helper()
	if a.Seen.IsZero() {
		a.Seen = time.Now()
	}
	if err := h.Act(within(t), a); err != nil {
		t.Fatalf("%s: %v", a.Kind, err)
	}
}

// wantText types text and waits until the program has it, after what it had.
func wantText(t testing.TB, h hands.Hands, w taker, text string) {
	t.Helper()
	had := w.text()
	began := time.Now()
	act(t, h, hands.Action{Kind: hands.Type, Text: text})
	t.Logf("%d characters took %v", len([]rune(text)), time.Since(began).Round(time.Millisecond))
	want := had + text
	if strings.Contains(w.title, "xterm") {
		want = had + strings.ReplaceAll(text, "\n", "\r")
	}
	end := time.Now().Add(patience)
	for w.text() != want && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
		if got := w.text(); !strings.HasPrefix(want, got) {
			break
		}
	}
	if got := w.text(); got != want {
		t.Errorf("typed %q, it got %q", text, strings.TrimPrefix(got, had))
	}
}

const (
	plainText = "The quick brown Fox (jumps) over 13 lazy dogs: {a|b} [c] <d> \"e\" 'f' ~/g\\h @i #j $5 %6 ^7 &8 *9 0_- += `k` z/y?!;,."
	worldText = "héllo ñ Ω àâçèêîôùû ÄÖÜäöüß Ÿœ Привет, мир Ёж 世界 日本語テキスト 한국어 😀🚀 € £ ¥ « » – — … ¿ ¡ e\u0301\tend\nnew line"
)

var layouts = map[string]struct {
	set  string
	then func(t testing.TB, h hands.Hands, name string)
}{
	"us":    {set: "us"},
	"fr":    {set: "fr"},
	"de":    {set: "de"},
	"us,ru": {set: "us,ru"},
	"ru active": {set: "us,ru", then: func(t testing.TB, h hands.Hands, _ string) {
		act(t, h, hands.Action{Kind: hands.Key, Chord: "ISO_Next_Group"})
	}},
	"us CapsLock": {set: "us", then: func(t testing.TB, _ hands.Hands, name string) { run(t, name, "xdotool", "key", "Caps_Lock") }},
}

// state is the locked modifiers, and above them the group.
func state(t testing.TB, h hands.Hands) int {
	t.Helper()
	_, s, err := h.(*desk).input.(*x11Input).keyboard()
	if err != nil {
		t.Fatal(err)
	}
	return int(s.locked) | int(s.group)<<8
}

func TestTypedAsText(t *testing.T) {
	for kind := range takers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := managed(t, "800x600")
			h := openAt(t, name)
			w := take(t, h, name, kind)
			for layout, l := range layouts {
				t.Run(layout, func(t *testing.T) {
					run(t, name, "setxkbmap", "-layout", l.set, "-option", "", "-option", "grp:menu_toggle")
					if got := run(t, name, "setxkbmap", "-query"); !strings.Contains(got, l.set+"\n") {
						t.Fatalf("the layout is\n%s", got)
					}
					if l.then != nil {
						l.then(t, h, name)
						defer l.then(t, h, name)
					}
					before := state(t, h)
					if caps, group := before&0x2 != 0, before>>8; caps != (layout == "us CapsLock") || group != map[bool]int{true: 1}[layout == "ru active"] {
						t.Fatalf("the keyboard's state is %x", before)
					}
					wantText(t, h, w, plainText)
					wantText(t, h, w, worldText)
					if after := state(t, h); after != before {
						t.Errorf("typing left the keyboard's state at %x, it was %x", after, before)
					}
				})
			}
		})
	}
}

// A program that is slow to read still gets what was meant when it was typed.
func TestTypedIntoASlowProgram(t *testing.T) {
	for _, kind := range []string{"gtk", "xterm"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := managed(t, "800x600")
			h := openAt(t, name)
			w := take(t, h, name, kind)
			had := w.text()
			done := make(chan error, 1)
			go func() { done <- h.Act(within(t), hands.Action{Kind: hands.Type, Text: worldText, Seen: time.Now()}) }()
			eventually(t, "typing", func() bool { return len(w.text()) > len(had) })
			w.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Second)
			w.cmd.Process.Signal(syscall.SIGCONT)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			want := had + worldText
			if kind == "xterm" {
				want = had + strings.ReplaceAll(worldText, "\n", "\r")
			}
			for end := time.Now().Add(patience); w.text() != want && time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond)
			}
			if got := w.text(); got != want {
				t.Errorf("it got %q", strings.TrimPrefix(got, had))
			}
		})
	}
}

// What spare keys meant for a while is gone afterwards, and what somebody else
// gave a key meanwhile is not.
func TestKeyboardIsAsBefore(t *testing.T) {
	name := xvfb(t, "300x200")
	h := openAt(t, name)
	keys := func() string { return run(t, name, "xmodmap", "-pke") }
	before := keys()
	act(t, h, hands.Action{Kind: hands.Type, Text: "世界"})
	if keys() == before {
		t.Fatal("the characters were given to no key")
	}
	eventually(t, "the keyboard as before", func() bool { return keys() == before })
	act(t, h, hands.Action{Kind: hands.Type, Text: "世界"})
	key, _, found := strings.Cut(keys(), " = U4E16")
	if !found {
		t.Fatalf("no key is 世:\n%s", keys())
	}
	key = key[strings.LastIndex(key, "keycode"):]
	run(t, name, "xmodmap", "-e", key+" = F23")
	eventually(t, "the other key as before", func() bool { return !strings.Contains(keys(), "U754C") })
	if !strings.Contains(keys(), key+" = F23") {
		t.Errorf("the key that was given another meaning lost it:\n%s", keys())
	}
	before = keys()
	act(t, h, hands.Action{Kind: hands.Type, Text: "世界"})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if keys() != before {
		t.Error("closing left keys with a meaning")
	}
}

const browserPage = `<title>browser</title><textarea id=t style="width:95%;height:400px" autofocus></textarea>
<script>t.oninput = () => { document.title = "browser" + JSON.stringify(t.value) }</script>`

func TestTypedIntoABrowser(t *testing.T) {
	t.Parallel()
	name := managed(t, "900x700")
	h := openAt(t, name)
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its processes write on for a moment
		eventually(t, "the browser's end", func() bool { return os.RemoveAll(dir) == nil })
	})
	page := filepath.Join(dir, "page.html")
	if err := os.WriteFile(page, []byte(browserPage), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, name, "env", "LC_ALL=C.UTF-8", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere", "HOME="+dir, "chromium", "--no-sandbox", "--no-first-run",
		"--disable-gpu", "--user-data-dir="+filepath.Join(dir, "data"), "--app=file://"+page, "--window-size=800,600", "--window-position=20,20")
	field := func() (text string, there bool) {
		s, _ := h.Windows(within(t))
		for _, w := range s {
			if quoted, ok := strings.CutPrefix(w.Title, "browser"); ok {
				json.Unmarshal([]byte(quoted), &text)
				return text, true
			}
		}
		return "", false
	}
	has := func(want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(patience); got != want && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			got, _ = field()
		}
		if got != want {
			t.Fatalf("the browser has %q, want %q", got, want)
		}
	}
	eventually(t, "the browser", func() bool { _, there := field(); return there })
	eventually(t, "its keyboard", func() bool {
		act(t, h, hands.Action{Kind: hands.Click, At: at(400, 300)})
		act(t, h, hands.Action{Kind: hands.Type, Text: "."})
		time.Sleep(200 * time.Millisecond)
		got, _ := field()
		return got != ""
	})
	for _, layout := range []string{"us", "fr", "us,ru"} {
		run(t, name, "setxkbmap", "-layout", layout)
		time.Sleep(200 * time.Millisecond)
		// A title has room for so much only.
		for _, text := range []string{plainText[:60], "héllo ñ Ω Ÿœ Привет 世界 日本語テ", "キスト 한국어 😀🚀 € £ « » …"} {
			act(t, h, hands.Action{Kind: hands.Key, Chord: "ctrl+a"})
			act(t, h, hands.Action{Kind: hands.Type, Text: text})
			has(text)
		}
	}
}
