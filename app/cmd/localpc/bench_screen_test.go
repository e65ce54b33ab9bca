//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"localpc/app/apptest"
)

// BenchmarkPicture is the third part of "make bench": a screen of 1080p as a JPEG
// in an MCP client's hands, through hub, tunnel, gate (granted) and record,
// beside the least that grabbing and encoding it costs here, and beside ffmpeg.
func BenchmarkPicture(b *testing.B) {
	if b.N > 1 {
		b.Skip("one round tells it: -benchtime 1x")
	}
	grab := filepath.Join(b.TempDir(), "grab")
	runs(b, "gcc", "-O2", "-o", grab, "testdata/grab.c", "-lX11", "-lXext", "-lturbojpeg")
	p := startForAgent(b, apptest.Options{Width: 1920, Height: 1080, NoTray: true, NoNotifications: true})
	d := p.d
	d.Start("xterm", "-title", "busy", "-geometry", "200x60+40+40", "-e", "sh", "-c", "for i in $(seq 200); do ls -la /usr/lib; done | head -2000; cat")
	d.WaitWindow(20*time.Second, "busy")
	time.Sleep(2 * time.Second)
	a := p.agent("Claude")
	a.shown("Claude")

	const rounds, warm = 40, 5
	least, whole, film := &timed{name: "XShm and libjpeg-turbo, nothing else"}, &timed{name: "localpc, in an MCP client's hands"}, &timed{name: "ffmpeg x11grab and mjpeg, a frame"}
	var bytes, sent int
	for i := range rounds {
		out, err := d.Run(20*time.Second, grab, "1")
		if err != nil {
			b.Fatal(err)
		}
		words := strings.Fields(out)
		ns, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		bytes, _ = strconv.Atoi(words[1])
		began := time.Now()
		g := a.call("local_pc_screenshot", map[string]any{"max_edge": 1920})
		took := time.Since(began)
		if g.image == nil || g.image.Bounds().Dx() != 1920 || g.image.Bounds().Dy() != 1080 {
			b.Fatalf("the picture is %v", g.picture)
		}
		sent = g.bytes
		if i >= warm {
			least.took = append(least.took, time.Duration(ns))
			whole.took = append(whole.took, took-g.decoding)
		}
	}
	// What ffmpeg takes to start is not counted: 30 frames more, and no more.
	frames := func(n int) time.Duration {
		began := time.Now()
		if _, err := d.Run(60*time.Second, "ffmpeg", "-loglevel", "error", "-f", "x11grab", "-framerate", "1000", "-video_size", "1920x1080", "-i", d.Inner,
			"-frames:v", strconv.Itoa(n), "-q:v", "5", "-c:v", "mjpeg", "-f", "null", "-"); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for range 5 {
		one := frames(1)
		film.took = append(film.took, (frames(31)-one)/30)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "\na screen of 1920 × 1080 as JPEG (%d and %d KB)\tmedian\tp95\tto the least\n", bytes>>10, sent>>10)
	for _, r := range []*timed{least, film, whole} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f ×\n", r.name, median(r.took).Round(10*time.Microsecond), quantile(r.took, 0.95).Round(10*time.Microsecond), ratio(median(r.took), median(least.took)))
	}
	aim(w, "in the client's hands, to the least", ratio(median(whole.took), median(least.took)), 2)
	w.Flush()
}
