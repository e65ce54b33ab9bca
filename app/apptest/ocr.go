//go:build linux

package apptest

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"image"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Word is one word read off the screen.
type Word struct {
	Text string
	Rect image.Rectangle // on the screen
}

var hashSeed = maphash.MakeSeed()

// looks are the ways a part of the screen is read, one after the other until
// what is looked for is found: as it is; larger, with words in the accent
// colour's buttons made dark on light; and that without frames.
const looks = 3

// What goes over every pixel is left out of the race detector (go:norace): the
// pictures belong to one goroutine, and it would take ten times as long.

// recognise reads the words of a part of the screen; the same picture is read
// once a look.
func (d *Desktop) recognise(img *image.RGBA, look int) ([]Word, error) {
	gray := toGray(img)
	var h maphash.Hash
	h.SetSeed(hashSeed)
	h.Write(gray.Pix)
	fmt.Fprint(&h, img.Rect, look)
	key := h.Sum64()
	if words, ok := d.seen[key]; ok {
		return words, nil
	}
	scale := 2
	if look > 0 {
		scale = 3
	}
	if dark(gray) {
		invert(gray)
	}
	if look > 0 {
		flatten(gray)
	}
	if look > 1 {
		unframe(gray)
	}
	words, err := tesseract(enlarge(gray, scale))
	if err != nil {
		return nil, err
	}
	for i := range words {
		r := words[i].Rect
		words[i].Rect = image.Rect(r.Min.X/scale, r.Min.Y/scale, (r.Max.X+scale-1)/scale, (r.Max.Y+scale-1)/scale).Add(img.Rect.Min)
	}
	d.seen[key] = words
	return words, nil
}

//go:norace
func toGray(img *image.RGBA) *image.Gray {
	b := img.Bounds()
	g := image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		src := img.Pix[img.PixOffset(b.Min.X, b.Min.Y+y):]
		for x := range b.Dx() {
			p := src[x*4:]
			g.Pix[y*g.Stride+x] = uint8((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2])) / 1000)
		}
	}
	return g
}

// dark says whether most of the picture is darker than middle gray.
//
//go:norace
func dark(g *image.Gray) bool {
	n := 0
	for _, v := range g.Pix {
		if v < 128 {
			n++
		}
	}
	return n > len(g.Pix)/2
}

//go:norace
func invert(g *image.Gray) {
	for i, v := range g.Pix {
		g.Pix[i] = 255 - v
	}
}

// flatten makes every place dark on light: it tiles the picture and measures
// each pixel against the commonest shade around it, so that a white word on a
// blue button comes out like a black one on white.
//
//go:norace
func flatten(g *image.Gray) {
	const tile, besideX, besideY = 8, 10, 6 // a look around that stays inside a button
	w, h := g.Rect.Dx(), g.Rect.Dy()
	tw, th := (w+tile-1)/tile, (h+tile-1)/tile
	ground := make([]int, tw*th)
	for ty := range th {
		for tx := range tw {
			var hist [32]int
			for y := max(0, ty*tile-besideY); y < min(h, (ty+1)*tile+besideY); y++ {
				for x := max(0, tx*tile-besideX); x < min(w, (tx+1)*tile+besideX); x++ {
					hist[g.Pix[y*g.Stride+x]/8]++
				}
			}
			best := 0
			for i, n := range hist {
				if n > hist[best] {
					best = i
				}
			}
			ground[ty*tw+tx] = best*8 + 4
		}
	}
	for y := range h {
		for x := range w {
			i := y*g.Stride + x
			diff := int(g.Pix[i]) - ground[(y/tile)*tw+x/tile]
			if diff < 0 {
				diff = -diff
			}
			g.Pix[i] = uint8(255 - min(255, diff*3/2))
		}
	}
}

// unframe takes the outlines of buttons, fields and boxes away: a reader takes
// a word in a frame for a drawing. A frame is what hangs together and is wider
// and taller than any letter.
//
//go:norace
func unframe(g *image.Gray) {
	const wide, tall, ink = 36, 18, 215
	w, h := g.Rect.Dx(), g.Rect.Dy()
	seen := make([]bool, w*h)
	var stack, part []int
	for start := range w * h {
		if seen[start] || g.Pix[start] > ink {
			continue
		}
		stack, part = append(stack[:0], start), part[:0]
		seen[start] = true
		x0, y0, x1, y1 := w, h, 0, 0
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			part = append(part, i)
			x, y := i%w, i/w
			x0, y0, x1, y1 = min(x0, x), min(y0, y), max(x1, x), max(y1, y)
			for ny := max(0, y-1); ny <= min(h-1, y+1); ny++ {
				for nx := max(0, x-1); nx <= min(w-1, x+1); nx++ {
					if n := ny*w + nx; !seen[n] && g.Pix[n] <= ink {
						seen[n] = true
						stack = append(stack, n)
					}
				}
			}
		}
		if x1-x0 < wide || y1-y0 < tall {
			continue
		}
		for _, i := range part {
			g.Pix[i] = 255
		}
	}
}

// enlarge scales by a whole number, with straight interpolation.
//
//go:norace
func enlarge(g *image.Gray, n int) *image.Gray {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(image.Rect(0, 0, w*n, h*n))
	for y := range h * n {
		sy := max(0, (2*y+1-n)*128/n)
		y0, fy := sy>>8, sy&255
		y1 := min(h-1, y0+1)
		for x := range w * n {
			sx := max(0, (2*x+1-n)*128/n)
			x0, fx := sx>>8, sx&255
			x1 := min(w-1, x0+1)
			top := int(g.Pix[y0*g.Stride+x0])*(256-fx) + int(g.Pix[y0*g.Stride+x1])*fx
			low := int(g.Pix[y1*g.Stride+x0])*(256-fx) + int(g.Pix[y1*g.Stride+x1])*fx
			out.Pix[y*out.Stride+x] = uint8((top*(256-fy) + low*fy) >> 16)
		}
	}
	return out
}

// tesseract runs the reader on one picture. One thread: more of them only wait
// for each other on pictures this small.
func tesseract(g *image.Gray) ([]Word, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var in bytes.Buffer
	fmt.Fprintf(&in, "P5\n%d %d\n255\n", g.Rect.Dx(), g.Rect.Dy())
	in.Write(g.Pix)
	cmd := exec.CommandContext(ctx, "tesseract", "stdin", "stdout", "--psm", "11", "--dpi", "200",
		"-c", "tessedit_create_tsv=1", "-c", "tessedit_do_invert=0")
	cmd.Env = []string{"OMP_THREAD_LIMIT=1", "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
	cmd.Stdin = &in
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("tesseract: %w: %s", err, errs.String())
	}
	return parseTSV(string(out)), nil
}

// parseTSV takes the words (level 5) out of tesseract's table.
func parseTSV(table string) []Word {
	var words []Word
	for _, row := range strings.Split(table, "\n") {
		f := strings.Split(row, "\t")
		if len(f) != 12 || f[0] != "5" {
			continue
		}
		text := strings.TrimSpace(f[11])
		if text == "" {
			continue
		}
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(f[6+i])
		}
		words = append(words, Word{text, image.Rect(n[0], n[1], n[0]+n[2], n[1]+n[3])})
	}
	return words
}

// lines sorts words into the lines that an eye sees: middles at one height,
// gaps of less than about three letters. Lines come from top to bottom, then
// from left to right.
func lines(words []Word) [][]Word {
	words = append([]Word(nil), words...)
	sort.SliceStable(words, func(i, j int) bool { return words[i].Rect.Min.X < words[j].Rect.Min.X })
	var all [][]Word
next:
	for _, w := range words {
		mid := (w.Rect.Min.Y + w.Rect.Max.Y) / 2
		for i, l := range all {
			last := l[len(l)-1].Rect
			gap := w.Rect.Min.X - last.Max.X
			tall := max(last.Dy(), w.Rect.Dy(), 10)
			if mid > last.Min.Y-2 && mid < last.Max.Y+2 && gap < tall*3/2 && gap > -tall {
				all[i] = append(l, w)
				continue next
			}
		}
		all = append(all, []Word{w})
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i][0].Rect, all[j][0].Rect
		if d := a.Min.Y - b.Min.Y; d < -6 || d > 6 {
			return d < 0
		}
		return a.Min.X < b.Min.X
	})
	return all
}
