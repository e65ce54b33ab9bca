package display

import (
	"bufio"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
)

// BenchmarkPictureTable is part of "make bench": what a picture of a screen of
// 1920 × 1080 costs from the screen to a JPEG file, against the least that it
// can cost, and against ffmpeg, measured in turns in the same run. It prints a
// table; nothing fails by being slow.
func BenchmarkPictureTable(b *testing.B) {
	const rounds, turns = 20, 3
	name := xvfb(b, "1920x1080")
	least := filepath.Join(b.TempDir(), "shmjpeg")
	if out, err := exec.Command("gcc", "-O2", "-o", least, "testdata/shmjpeg.c", "-lX11", "-lXext", "-lturbojpeg").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	from := filepath.Join(b.TempDir(), "screen.png")
	desktop(b, from)
	start(b, name, "display", "-window", "root", from)
	h := openAt(b, name)
	shoot := func(l space.Limit) func() ([]time.Duration, error) {
		return func() (took []time.Duration, err error) {
			for range rounds {
				begun := time.Now()
				if _, err = h.Shoot(context.Background(), hands.Ask{Area: wholeScreen, Limit: l}); err != nil {
					return nil, err
				}
				took = append(took, time.Since(begun))
			}
			return took, nil
		}
	}
	eventually(b, "the picture on the screen", func() bool {
		s, err := h.Shoot(context.Background(), hands.Ask{Area: wholeScreen})
		return err == nil && len(s.Data) > 100_000
	})
	rows := []*struct {
		name string
		do   func() ([]time.Duration, error)
		took []time.Duration
	}{
		{name: "XShm and libjpeg-turbo, in C", do: func() (took []time.Duration, err error) {
			for line := range strings.Lines(run(b, name, least, strconv.Itoa(rounds))) {
				ms, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
				if err != nil {
					return nil, err
				}
				took = append(took, time.Duration(ms*float64(time.Millisecond)))
			}
			return took, nil
		}},
		{name: "Local PC Executor, 1920 × 1080", do: shoot(space.Limit{})},
		{name: "Local PC Executor, for Claude (1456 × 819)", do: shoot(space.Usual)},
		{name: "ffmpeg x11grab, picture by picture", do: func() ([]time.Duration, error) { return ffmpeg(b, name, rounds) }},
		{name: "ffmpeg x11grab, started for one picture", do: func() (took []time.Duration, err error) {
			for range 3 {
				begun := time.Now()
				if _, err := ffmpeg(b, name, 1); err != nil {
					return nil, err
				}
				took = append(took, time.Since(begun))
			}
			return took, nil
		}},
	}
	for b.Loop() {
		for range turns {
			for _, r := range rows {
				took, err := r.do()
				if err != nil {
					b.Fatalf("%s: %v", r.name, err)
				}
				r.took = append(r.took, took...)
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\nscreen to JPEG\tmedian\tp95\tto the least (aim 2 ×)\tto ffmpeg")
	at := func(d []time.Duration, q float64) time.Duration {
		slices.Sort(d)
		return d[int(q*float64(len(d)-1))]
	}
	first, other := at(rows[0].took, 0.5), at(rows[3].took, 0.5)
	for _, r := range rows {
		m := at(r.took, 0.5)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f ×\t%.2f ×\n", r.name, m.Round(10*time.Microsecond), at(r.took, 0.95).Round(10*time.Microsecond),
			float64(m)/float64(first), float64(m)/float64(other))
	}
	w.Flush()
}

// desktop writes a picture like that of a desktop: a gradient, windows, and
// what has edges like text.
func desktop(b *testing.B, to string) {
	r := rand.New(rand.NewPCG(1, 2))
	img := image.NewRGBA(image.Rect(0, 0, 1920, 1080))
	for y := range 1080 {
		for x := range 1920 {
			img.SetRGBA(x, y, color.RGBA{uint8(x / 8), uint8(y / 5), uint8((x + y) / 12), 255})
		}
	}
	for range 5 {
		at := image.Pt(r.IntN(1200), r.IntN(600))
		draw.Draw(img, image.Rect(0, 0, 700, 460).Add(at), image.White, image.Point{}, draw.Src)
		for line := 20; line < 440; line += 18 {
			for x := 20; x < 680; x += 3 + r.IntN(6) {
				draw.Draw(img, image.Rect(x, line, x+2, line+4+r.IntN(9)).Add(at), image.Black, image.Point{}, draw.Src)
			}
		}
	}
	f, err := os.Create(to)
	if err == nil {
		err = png.Encode(f, img)
	}
	if err != nil {
		b.Fatal(err)
	}
	f.Close()
}

// ffmpeg grabs n pictures and says how long it took between one and the next.
func ffmpeg(b *testing.B, name string, n int) (took []time.Duration, err error) {
	cmd := exec.Command("ffmpeg", "-v", "error", "-f", "x11grab", "-draw_mouse", "0", "-framerate", "1000", "-i", name,
		"-frames:v", strconv.Itoa(n+1), "-threads", "1", "-fps_mode", "passthrough", "-q:v", "4", "-c:v", "mjpeg", "-f", "framecrc", "-flush_packets", "1", "-")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	var last time.Time
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if !last.IsZero() {
			took = append(took, time.Since(last))
		}
		last = time.Now()
	}
	return took, cmd.Wait()
}
