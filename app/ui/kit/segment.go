package kit

import (
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// Segments is a choice of one out of a few words: mouse, or arrow keys.
type Segments struct {
	widget.BaseWidget
	// OnChange hears of each change by the person.
	OnChange func(i int)
	Keys     *Keys

	words    []*label
	long     []string // the words, and what stands for them where there is no room
	short    []string
	hidden   map[int]bool
	grounds  []*box
	lines    []*box
	edge     *box
	ring     *box
	selected int
	focused  bool
}

// NewSegments makes a choice with the first word chosen.
func NewSegments(words []string, keys *Keys, change func(i int)) *Segments {
	s := &Segments{Keys: keys, OnChange: change, hidden: map[int]bool{}, long: words, short: words}
	for i, w := range words {
		s.words = append(s.words, newLabel(w, Small, Ink, false))
		s.grounds = append(s.grounds, newBox(None, None, 0))
		if i > 0 {
			s.lines = append(s.lines, newBox(Line, None, 0))
		}
	}
	s.edge = newBox(None, Edge, Radius)
	s.ring = newRing(Radius)
	s.ExtendBaseWidget(s)
	return s
}

// Short are the words where there is no room for the long ones.
func (s *Segments) Short(words []string) *Segments { s.short = words; return s }

// Selected is the chosen one.
func (s *Segments) Selected() int { return s.selected }

// Select chooses i without telling OnChange.
func (s *Segments) Select(i int) { s.selected = i; s.Refresh() }

// Hide1 takes word i out, or puts it back. The chosen one stays chosen.
func (s *Segments) Hide1(i int, out bool) {
	if s.hidden[i] != out {
		s.hidden[i] = out
		s.Refresh()
		s.layout(s.Size())
	}
}

// Offered says whether word i can be chosen.
func (s *Segments) Offered(i int) bool { return i >= 0 && i < len(s.words) && !s.hidden[i] }

func (s *Segments) choose(i int) {
	if s.Offered(i) && i != s.selected {
		s.selected = i
		s.Refresh()
		if s.OnChange != nil {
			s.OnChange(i)
		}
	}
}

func (s *Segments) width(i int) float32 { return s.room(i, s.words[i].text) }

// room is how wide word i is as text.
func (s *Segments) room(i int, text string) float32 {
	if s.hidden[i] {
		return 0
	}
	// Room for the bold word, so that nothing moves when it is chosen.
	w := fyne.MeasureText(text, Small, fyne.TextStyle{Bold: true}).Width
	return float32(math.Ceil(float64(w))) + 24
}

// whole is how wide it is with these words.
func (s *Segments) whole(words []string) float32 {
	w := float32(0)
	for i, text := range words {
		w += s.room(i, text)
	}
	return w
}

// Tapped chooses the word that was clicked.
func (s *Segments) Tapped(e *fyne.PointEvent) {
	focus(s)
	x := float32(0)
	for i := range s.words {
		w := s.width(i)
		if w > 0 && e.Position.X >= x && e.Position.X < x+w {
			s.choose(i)
			return
		}
		x += w
	}
}

// TypedRune hands characters on.
func (s *Segments) TypedRune(r rune) { s.Keys.rune(r) }

// TypedKey moves the choice.
func (s *Segments) TypedKey(e *fyne.KeyEvent) {
	step := map[fyne.KeyName]int{fyne.KeyLeft: -1, fyne.KeyUp: -1, fyne.KeyRight: 1, fyne.KeyDown: 1}[e.Name]
	if step == 0 {
		s.Keys.key(e)
		return
	}
	if !s.Keys.live() {
		return
	}
	for i := s.selected + step; i >= 0 && i < len(s.words); i += step {
		if s.Offered(i) {
			s.choose(i)
			return
		}
	}
}

// FocusGained is Fyne's.
func (s *Segments) FocusGained() { s.focused = true; s.Refresh(); reveal(s) }

// FocusLost is Fyne's.
func (s *Segments) FocusLost() { s.focused = false; s.Refresh() }

func (s *Segments) paint() {
	first, last := -1, -1
	for i := range s.words {
		if !s.hidden[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	for i, w := range s.words {
		on := i == s.selected
		w.ink, s.grounds[i].fill = Ink, None
		if on {
			w.ink, s.grounds[i].fill = On, Accent
		}
		w.bold = on
		w.paint()
		g := s.grounds[i]
		g.paint()
		g.TopLeftCornerRadius, g.BottomLeftCornerRadius = 0, 0
		g.TopRightCornerRadius, g.BottomRightCornerRadius = 0, 0
		if i == first {
			g.TopLeftCornerRadius, g.BottomLeftCornerRadius = Radius, Radius
		}
		if i == last {
			g.TopRightCornerRadius, g.BottomRightCornerRadius = Radius, Radius
		}
		w.Hidden, g.Hidden = s.hidden[i], s.hidden[i]
		if i > 0 {
			s.lines[i-1].paint()
			s.lines[i-1].Hidden = s.hidden[i] || i == first || on || i-1 == s.selected
		}
	}
	s.edge.paint()
	s.ring.paint()
	s.ring.Hidden = !s.focused
}

func (s *Segments) layout(size fyne.Size) {
	words := s.long
	if size.Width < s.whole(s.long) {
		words = s.short
	}
	for i, w := range words {
		s.words[i].text = w
	}
	h := s.MinSize().Height
	y := mid(size.Height, h)
	x := float32(0)
	for i, l := range s.words {
		w := s.width(i)
		s.grounds[i].Move(fyne.NewPos(x, y))
		s.grounds[i].Resize(fyne.NewSize(w, h))
		l.centre(fyne.NewPos(x, y), fyne.NewSize(w, h))
		if i > 0 {
			s.lines[i-1].Move(fyne.NewPos(x, y))
			s.lines[i-1].Resize(fyne.NewSize(1, h))
		}
		x += w
	}
	s.edge.Move(fyne.NewPos(0, y))
	s.edge.Resize(fyne.NewSize(x, h))
	s.ring.around(fyne.NewPos(0, y), fyne.NewSize(x, h))
}

// CreateRenderer is Fyne's.
func (s *Segments) CreateRenderer() fyne.WidgetRenderer {
	s.paint()
	d := &drawn{of: s, layout: s.layout}
	for _, g := range s.grounds {
		d.objects = append(d.objects, g.Rectangle)
	}
	for _, l := range s.lines {
		d.objects = append(d.objects, l.Rectangle)
	}
	d.objects = append(d.objects, s.edge.Rectangle, s.ring.Rectangle)
	for _, w := range s.words {
		d.objects = append(d.objects, w.Container)
	}
	d.min = func() fyne.Size { return fyne.NewSize(s.whole(s.short), 31) }
	d.refresh = func() {
		s.paint()
		s.layout(s.Size())
	}
	return d
}
