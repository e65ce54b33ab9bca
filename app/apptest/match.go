//go:build linux

package apptest

import (
	"image"
	"sort"
	"strings"
	"unicode"
)

// letters folds text to what is compared: letters and digits in lower case,
// with those made equal that look alike on a screen.
func letters(s string) []rune {
	var out []rune
	for _, r := range strings.ToLower(s) {
		switch r {
		case 'i', '1', '|', '!', 'í', 'ı':
			r = 'l'
		case '0':
			r = 'o'
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, r)
		}
	}
	return out
}

// slack is how many letters of n may be read wrongly: never so many that
// "can be undone" is read where "cannot be undone" stands.
func slack(n int) int {
	switch {
	case n < 8:
		return 0
	case n < 24:
		return 1
	}
	return 2
}

// find looks for want in one line of words, from the start of a word to the
// end of one; spaces do not count. The best match wins, then the topmost.
func find(words []Word, want string) (image.Rectangle, bool) {
	pattern := letters(want)
	if len(pattern) == 0 {
		return image.Rectangle{}, false
	}
	var best image.Rectangle
	cost := slack(len(pattern)) + 1
	for _, line := range lines(words) {
		for from := range line {
			var text []rune
			var r image.Rectangle
			for to := from; to < len(line) && len(text) <= len(pattern)+cost; to++ {
				text = append(text, letters(line[to].Text)...)
				r = r.Union(line[to].Rect)
				if len(text) < len(pattern)-cost {
					continue
				}
				if c := distance(pattern, text); c < cost {
					cost, best = c, r
				}
			}
		}
	}
	return best, !best.Empty()
}

// contains looks for a sentence in the words of one column, line after line.
func contains(words []Word, sentence string) bool {
	pattern := letters(sentence)
	if len(pattern) == 0 {
		return false
	}
	for _, column := range columns(words) {
		var text []rune
		for _, line := range column {
			for _, w := range line {
				text = append(text, letters(w.Text)...)
			}
		}
		if within(pattern, text) <= slack(len(pattern)) {
			return true
		}
	}
	return false
}

// columns groups lines that stand below each other: their horizontal extents
// overlap and the gap is less than two lines. A line may be in several.
func columns(words []Word) [][][]Word {
	all := lines(words)
	rects := make([]image.Rectangle, len(all))
	for i, l := range all {
		for _, w := range l {
			rects[i] = rects[i].Union(w.Rect)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return rects[order[i]].Min.Y < rects[order[j]].Min.Y })
	var out [][][]Word
	for n, first := range order {
		column, last := [][]Word{all[first]}, rects[first]
		for _, i := range order[n+1:] {
			r := rects[i]
			if r.Min.Y >= last.Max.Y-4 && r.Min.Y-last.Max.Y < 2*max(last.Dy(), 10) &&
				r.Min.X < last.Max.X && r.Max.X > last.Min.X {
				column, last = append(column, all[i]), r
			}
		}
		out = append(out, column)
	}
	return out
}

// distance counts the letters to insert, drop or change between a and b.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		row = step(row, x, b, i+1)
	}
	return row[len(b)]
}

// within is the least distance between a and any part of b.
func within(a, b []rune) int {
	row := make([]int, len(b)+1)
	for i, x := range a {
		row = step(row, x, b, i+1)
	}
	least := len(a)
	for _, v := range row {
		least = min(least, v)
	}
	return least
}

func step(prev []int, x rune, b []rune, first int) []int {
	next := make([]int, len(prev))
	next[0] = first
	for j, y := range b {
		change := prev[j]
		if x != y {
			change++
		}
		next[j+1] = min(change, prev[j+1]+1, next[j]+1)
	}
	return next
}
