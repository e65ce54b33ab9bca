package kit

import (
	"strings"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"

	"localpc/consent"
)

// Span is a piece of text in one style. Its text is drawn as it is: what
// comes from elsewhere goes through Remote.
type Span struct {
	Text string
	Ink  fyne.ThemeColorName
	Bold bool
	Mono bool
}

// Plain is text of our own.
func Plain(s string, ink fyne.ThemeColorName) Span { return Span{Text: s, Ink: ink} }

// Bold is text of our own, bold.
func Bold(s string, ink fyne.ThemeColorName) Span { return Span{Text: s, Ink: ink, Bold: true} }

// Remote makes spans of text that came from elsewhere: what cannot be seen is
// written as an escape, and the escapes are in the risk colour, so that one
// differs from a backslash that was typed.
func Remote(s string, style Span) []Span {
	var out []Span
	for _, r := range runs(s, false) {
		sp := style
		sp.Text = r.text
		if r.escape {
			sp.Ink = Risk
		}
		out = append(out, sp)
	}
	return out
}

// run is a stretch of visible text; escape marks one that stands for a
// character that cannot be seen.
type run struct {
	text   string
	escape bool
}

// runs is consent.Visible with its escapes told apart.
func runs(s string, multiline bool) []run {
	var out []run
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			out = append(out, run{text: plain.String()})
			plain.Reset()
		}
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f {
			plain.WriteByte(c)
			i++
			continue
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		one := s[i : i+n]
		v := consent.Visible(one, multiline)
		if v == one {
			plain.WriteString(v)
		} else {
			flush()
			out = append(out, run{text: v, escape: true})
		}
		i += n
	}
	flush()
	return out
}

// Flow is a paragraph that wraps by words, and inside a word where that is
// longer than a line.
type Flow struct {
	widget.BaseWidget
	size  float32
	spans []Span
	// lines is the most that are drawn, the last with an ellipsis; 0: all.
	lines         int
	width         float32
	right, centre bool
	// placed is what is drawn at width.
	placed []placed
	height float32
	widest float32
	cut    bool // there is more than is drawn
}

type placed struct {
	text *canvas.Text
	ink  fyne.ThemeColorName
}

// NewFlow makes a paragraph that is width wide until it is resized.
func NewFlow(width, size float32, spans ...Span) *Flow {
	f := &Flow{size: size, spans: spans, width: width}
	f.ExtendBaseWidget(f)
	f.wrap()
	return f
}

// NewLine is a paragraph of at most lines lines.
func NewLine(width, size float32, lines int, spans ...Span) *Flow {
	f := &Flow{size: size, spans: spans, width: width, lines: lines}
	f.ExtendBaseWidget(f)
	f.wrap()
	return f
}

// Centre puts each line in the middle of the width it is given.
func (f *Flow) Centre() *Flow { f.centre = true; f.wrap(); return f }

// Right aligns the paragraph to the right.
func (f *Flow) Right() *Flow { f.right = true; f.wrap(); return f }

// Set replaces the text; nothing is redrawn when it is the same.
func (f *Flow) Set(spans ...Span) {
	if len(spans) == len(f.spans) {
		same := true
		for i := range spans {
			same = same && spans[i] == f.spans[i]
		}
		if same {
			return
		}
	}
	f.spans = spans
	f.wrap()
	f.Refresh()
}

// Text is what is drawn or would be, for tests and for copying.
func (f *Flow) Text() string {
	var b strings.Builder
	for _, s := range f.spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

func (f *Flow) lineHeight() float32 {
	k := float32(1.45)
	if f.size >= Title {
		k = 1.3
	}
	return float32(int(f.size*k + 0.5))
}

func style(s Span) fyne.TextStyle { return fyne.TextStyle{Bold: s.Bold, Monospace: s.Mono} }

func (f *Flow) measure(s Span, text string) float32 {
	return fyne.MeasureText(text, f.size, style(s)).Width
}

// piece is a word or a gap of one span.
type piece struct {
	span  Span
	text  string
	width float32
}

// wrap breaks the spans into lines at f.width and places them.
func (f *Flow) wrap() {
	var lines [][]piece
	var line []piece
	used := float32(0)
	brk := func() {
		lines = append(lines, line)
		line, used = nil, 0
	}
	add := func(p piece) {
		if n := len(line); n > 0 && line[n-1].span.same(p.span) {
			line[n-1].text += p.text
			line[n-1].width += p.width
		} else {
			line = append(line, p)
		}
		used += p.width
	}
	// A word may be made of several spans: it stays together. Lines above a
	// limit of a thousand are cut off before they cost memory.
	for _, word := range f.words() {
		if len(lines) > 1000 || f.lines > 0 && len(lines) > f.lines {
			break
		}
		w := float32(0)
		for _, p := range word {
			w += p.width
		}
		if word[0].text == "\n" {
			brk()
			continue
		}
		if used+w <= f.width+0.01 {
			for _, p := range word {
				add(p)
			}
			continue
		}
		if strings.TrimSpace(word[0].text) == "" { // a gap at the end of a line
			if len(line) > 0 {
				brk()
			}
			continue
		}
		if len(line) > 0 && w <= f.width {
			brk()
			for _, p := range word {
				add(p)
			}
			continue
		}
		for _, p := range word { // longer than a line: break anywhere
			for _, r := range p.text {
				cw := f.measure(p.span, string(r))
				if used+cw > f.width && len(line) > 0 {
					brk()
				}
				add(piece{p.span, string(r), cw})
			}
		}
	}
	if len(line) > 0 || len(lines) == 0 {
		brk()
	}
	f.cut = f.lines > 0 && len(lines) > f.lines
	if f.cut {
		lines = lines[:f.lines]
		last := lines[f.lines-1]
		lines[f.lines-1] = f.ellipsis(last)
	}
	f.place(lines)
}

func (s Span) same(o Span) bool { return s.Ink == o.Ink && s.Bold == o.Bold && s.Mono == o.Mono }

// ellipsis shortens a line so that "…" fits behind it.
func (f *Flow) ellipsis(line []piece) []piece {
	if len(line) == 0 {
		return []piece{{f.spans[0], "…", 0}}
	}
	for len(line) > 0 {
		last := &line[len(line)-1]
		before := float32(0)
		for _, p := range line[:len(line)-1] {
			before += p.width
		}
		for {
			text := strings.TrimRight(last.text, " ") + "…"
			if before+f.measure(last.span, text) <= f.width || last.text == "" && len(line) == 1 {
				last.text = text
				return line
			}
			if last.text == "" {
				break
			}
			_, n := utf8.DecodeLastRuneInString(last.text)
			last.text = last.text[:len(last.text)-n]
		}
		line = line[:len(line)-1]
	}
	return line
}

// words cuts the spans at spaces; a word that crosses spans is one word.
func (f *Flow) words() [][]piece {
	var out [][]piece
	var word []piece
	for _, s := range drawableAll(f.spans) {
		rest := s.Text
		for rest != "" {
			i := strings.IndexAny(rest, " \n")
			switch {
			case i == 0:
				if word != nil {
					out, word = append(out, word), nil
				}
				g := rest[:1]
				rest = rest[1:]
				out = append(out, []piece{{s, g, f.measure(s, g)}})
			case i < 0:
				word = append(word, piece{s, rest, f.measure(s, rest)})
				rest = ""
			default:
				word = append(word, piece{s, rest[:i], f.measure(s, rest[:i])})
				rest = rest[i:]
			}
		}
	}
	if word != nil {
		out = append(out, word)
	}
	return out
}

func (f *Flow) place(lines [][]piece) {
	f.placed = f.placed[:0:0]
	f.widest = 0
	lh := f.lineHeight()
	for i, line := range lines {
		x := float32(0)
		var row []*canvas.Text
		for _, p := range line {
			for _, part := range oneWay(p.text) {
				t := canvas.NewText(part, Color(p.span.Ink))
				t.TextSize, t.TextStyle = f.size, style(p.span)
				m := t.MinSize()
				t.Resize(m)
				t.Move(fyne.NewPos(x, float32(i)*lh+mid(lh, m.Height)))
				x += m.Width
				row = append(row, t)
				f.placed = append(f.placed, placed{t, p.span.Ink})
			}
		}
		if free := f.width - x; (f.right || f.centre) && free > 0 {
			if f.centre {
				free /= 2
			}
			for _, t := range row {
				t.Move(t.Position().AddXY(free, 0))
			}
			x = f.width
		}
		f.widest = max(f.widest, x)
	}
	f.height = float32(len(lines)) * lh
}

// Resize wraps again where the width has changed.
func (f *Flow) Resize(s fyne.Size) {
	fits := s.Width >= f.widest && s.Width <= f.width && !f.centre // no wider than it may be, and whole
	if s.Width > 0 && !fits {
		f.width = s.Width
		f.wrap()
		f.Refresh()
	}
	f.BaseWidget.Resize(s)
}

// within wraps at w from now on, however short the text is.
func (f *Flow) within(w float32) {
	if f.width != w {
		f.width = w
		f.wrap()
		f.Refresh()
	}
	f.BaseWidget.Resize(fyne.NewSize(w, f.height))
}

// Cut says that there is more than is drawn.
func (f *Flow) Cut() bool { return f.cut }

// Most changes how many lines are drawn; 0 is all.
func (f *Flow) Most(lines int) {
	if f.lines != lines {
		f.lines = lines
		f.wrap()
		f.Refresh()
	}
}

// Widest is the width of the longest line.
func (f *Flow) Widest() float32 { return f.widest }

// CreateRenderer is Fyne's.
func (f *Flow) CreateRenderer() fyne.WidgetRenderer {
	d := &drawn{of: f}
	fill := func() {
		d.objects = d.objects[:0:0]
		for _, p := range f.placed {
			p.text.Color = Color(p.ink)
			d.objects = append(d.objects, p.text)
		}
	}
	fill()
	d.layout = func(fyne.Size) {}
	d.min = func() fyne.Size {
		if f.right || f.centre {
			return fyne.NewSize(f.width, f.height)
		}
		return fyne.NewSize(f.widest, f.height)
	}
	d.refresh = fill
	return d
}
