//go:build linux

package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

var shots = flag.String("screenshots", "", "the folder that BenchmarkScreenshots writes into")

// BenchmarkScreenshots is "make screenshots": it goes through the program as a
// person does, and keeps the pictures that README shows. It measures nothing;
// it is a benchmark so that tests do not run it.
func BenchmarkScreenshots(b *testing.B) {
	if *shots == "" {
		b.Fatal("name the folder with -screenshots DIR; make screenshots does")
	}
	d := apptest.New(b, apptest.Options{Width: 1280, Height: 900, Ordinary: true})
	files := map[string]string{"plan.md": "Tidy up\n", "prices.csv": "name,price\n"}
	for i := range 214 {
		files["scratch-"+string(rune('a'+i/26%26))+string(rune('a'+i%26))+string(rune('a'+i/676))+".tmp"] = "left over from an old run\n"
	}
	folder := workFolder(b, d, files)
	d.Give(folder)
	p := startIn(b, d, "--folder", folder)
	p.intend(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Name: new("Workshop PC")}})
	opened := catchBrowser(b, d)
	hub := startHub(b, d, p.bin)

	// Pair, with the hub's page beside it.
	w := d.Window("Pair")
	w.ClickText("My", "own", "hub")
	w.WaitText(10*time.Second, "Address", "of", "the", "hub")
	d.Type("https://hub.example")
	keep(b, d, "Pair", "pair")
	for range len("https://hub.example") {
		d.Key("BackSpace")
	}
	d.Type(hub.address)
	p.button(w, "Pair")
	hub.open(opened()).sees("Connect this computer?")
	hub.run(chromedp.EmulateViewport(484, 760))
	page, err := chromedp.Run(hub.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	write(b, "pairing", bytes.NewReader(page), image.Rectangle{})
	hub.click("Yes, connect this computer").sees("You can close this page")
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })

	// An agent works: cards and the log.
	s := newSDK(b, hub.key("Research agent"))
	made := s.start("create", map[string]any{"timeoutMs": 3600_000, "metadata": map[string]string{"title": "Tidy up my folder"}})
	card := p.card("Research agent")
	keep(b, d, cardTitle, "session")
	card.ClickText("Work", "in", "this", "folder")
	p.press(card, "Start")
	made.ok(20 * time.Second)
	p.noCard()
	s.works("ls | wc -l")
	s.start("write", map[string]any{"path": "notes/first.md", "data": "# Notes\n"}).ok(20 * time.Second)
	s.works("cat plan.md prices.csv | wc -l")
	gone := s.start("run", map[string]any{"cmd": "find . -name '*.tmp' -type f -delete"})
	card = p.card("delete 214 files")
	time.Sleep(time.Second)
	keep(b, d, cardTitle, "card")
	card.ClickText("This", "session")
	p.press(card, "Allow")
	gone.ok(20 * time.Second)
	p.noCard()
	denied := s.start("write", map[string]any{"path": ".envrc", "data": "nothing\n"})
	p.press(p.card("other programs"), "Deny")
	denied.failed(20*time.Second, "declined")
	p.noCard()
	long := s.start("run", map[string]any{"cmd": "for i in 1 2 3; do echo checked $i; sleep 1; done; sleep 300", "timeoutMs": 0})
	d.ClickTray("Activity")
	d.WaitWindow(20*time.Second, "Activity")
	p.choose([]string{"sleep"}, "Output", "so", "far")
	time.Sleep(4 * time.Second)
	keep(b, d, "Activity", "activity")
	d.ClickTray("Permissions")
	d.WaitWindow(20*time.Second, "Permissions")
	time.Sleep(time.Second)
	keep(b, d, "Permissions", "permissions")
	p.must("stop-work")
	long.wait(20 * time.Second)
}

// BenchmarkScreenshotsInUse keeps the pictures of a screen that a program sees
// and uses.
func BenchmarkScreenshotsInUse(b *testing.B) {
	if *shots == "" {
		b.Fatal("name the folder with -screenshots DIR; make screenshots does")
	}
	p := startForAgent(b, apptest.Options{Width: 1280, Height: 800, Ordinary: true})
	d := p.d
	a := p.agent("Claude")
	notes := p.reader("notes.txt", "72x14+90+300")
	d.Start("xterm", "-title", private, "-geometry", "30x10+880+330", "-e", "cat")
	d.WaitWindow(20*time.Second, private)
	c := a.start("local_pc_screenshot", nil)
	card := a.asked(c, "Claude is requesting screen access")
	thumbnail(b, p, card)
	keep(b, d, cardTitle, "screen")
	p.allowedForSession(card)
	first := a.wait(c)
	x, y := notes.middle()
	a.acting("Claude", first, x, y)
	a.click(a.see(nil), x, y)
	a.call("local_pc_type", map[string]any{"text": "Good morning,\nthe prices are in the table below."})
	p.strip("Claude is using your mouse and keyboard")
	var whole bytes.Buffer
	if err := png.Encode(&whole, d.Capture()); err != nil {
		b.Fatal(err)
	}
	write(b, "strip", &whole, image.Rect(0, 0, 1280, 640))
}

// keep writes a picture of a window, without the frame that the desktop draws.
func keep(b *testing.B, d *apptest.Desktop, title, name string) {
	b.Helper()
	r, ok := d.Window(title).Rect()
	if !ok {
		b.Fatalf("there is no window %q", title)
	}
	d.Move(4, 4)
	time.Sleep(500 * time.Millisecond)
	var whole bytes.Buffer
	if err := png.Encode(&whole, d.Capture()); err != nil {
		b.Fatal(err)
	}
	write(b, name, &whole, r)
}

// write keeps a part of a picture, or the whole, small enough for a page.
func write(b *testing.B, name string, picture io.Reader, part image.Rectangle) {
	b.Helper()
	args := []string{"-"}
	if !part.Empty() {
		args = append(args, "-crop", fmt.Sprintf("%dx%d+%d+%d", part.Dx(), part.Dy(), part.Min.X, part.Min.Y), "+repage")
	}
	cmd := exec.Command("convert", append(args, "-dither", "None", "-colors", "128", "-strip", "PNG8:"+filepath.Join(*shots, name+".png"))...)
	cmd.Stdin = picture
	if msg, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("convert: %v\n%s", err, msg)
	}
}
