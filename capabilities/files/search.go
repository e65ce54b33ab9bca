package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// searchFor bounds a search, searchFile what one file takes of it: then the
// reply says that there is more.
const (
	searchFor  = 5 * time.Second
	searchFile = 2 * time.Second
)

// searchOp is FILE_SEARCH. What a git folder holds is left out, unless the name
// that is looked for speaks of it.
type searchOp struct {
	request
	p     *wire.FileSearch
	asked asked
	place place
	name  func(rel string) bool
	text  *matcher // nil: names are looked for
}

func (o *searchOp) look(context.Context) (capabilities.Description, error) {
	var err error
	if o.asked, o.place, err = o.j.folderAt(o.p.Path, "to search in"); err != nil {
		return capabilities.Description{}, err
	}
	if o.name, err = globbed(o.p.Name, o.p.IgnoreCase); err != nil {
		return capabilities.Description{}, err
	}
	if o.text, err = newMatcher(o.p); err != nil {
		return capabilities.Description{}, err
	}
	what := []string{}
	if o.p.Name != "" {
		what = append(what, "names like "+shown(o.p.Name))
	}
	if o.p.Text != "" {
		what = append(what, "the text "+shown(o.p.Text))
	}
	if len(what) == 0 {
		what = append(what, "all names")
	}
	d := looksOnly("search", "Search in "+named(o.place), "%s wants to search in "+named(o.place), exact(o.asked, o.place)+"\nfor "+strings.Join(what, "\nwith "), o.place)
	d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "searches 1 folder and all below it", Count: 1}}
	d.Payload = payload{Type: wire.TypeFileSearch, Path: o.p.Path,
		Search: &search{Name: o.p.Name, Text: o.p.Text, Regexp: o.p.Regexp, IgnoreCase: o.p.IgnoreCase, Max: o.p.Max}}
	d.Fingerprint = o.place.key() + "\x00" + o.place.node.which()
	return d, nil
}

// maxAlternatives bounds what {a,b} in a pattern can stand for: each is tried.
const maxAlternatives = 4096

// globbed makes a test of a path below the folder; "" is every path.
func globbed(pattern string, fold bool) (func(string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, wire.Errorf(wire.CodeInvalid, "%s is not a pattern for names. Write one like *.txt, or **/*.txt for folders below as well.", shown(pattern))
	}
	ways, commas := 1, 0
	for _, c := range pattern {
		switch c {
		case '{':
			commas = 0
		case ',':
			commas++
		case '}':
			if ways *= commas + 1; ways > maxAlternatives {
				return nil, wire.Errorf(wire.CodeInvalid, "The pattern for names has too many alternatives in braces.")
			}
			commas = 0
		}
	}
	if fold {
		pattern = folded(pattern)
		return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, folded(rel)) }, nil
	}
	return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, rel) }, nil
}

// searcher is one search under way.
type searcher struct {
	o    *searchOp
	ctx  context.Context // ends with the time there is
	git  bool            // git folders are looked into
	hits []wire.Hit
	cost int
	more bool
	buf  []byte
}

// errEnough: there are as many hits as were asked for, or as a reply takes.
var errEnough = errors.New("enough was found")

func (o *searchOp) run(ctx context.Context, _ capabilities.Output) (capabilities.Result, error) {
	timed, cancel := context.WithTimeout(ctx, searchFor)
	defer cancel()
	s := &searcher{o: o, ctx: timed, git: strings.Contains(folded(o.p.Name), ".git"), hits: []wire.Hit{}}
	dir, err := o.place.base.open(o.place.rel)
	if err != nil {
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	err = s.dir(dir, o.place, ".", o.asked.reply(o.place))
	switch {
	case ctx.Err() != nil:
		return capabilities.Result{}, context.Cause(ctx)
	case err == errEnough, err != nil && timed.Err() != nil:
		s.more = true
	case err != nil:
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	words := count(len(s.hits), "hit", "hits", false)
	if s.more {
		words += ", and there is more"
	}
	return capabilities.Result{Type: wire.TypeFileSearchResponse, Payload: &wire.FileSearchResponse{Hits: s.hits, More: s.more}, Outcome: words}, nil
}

// dir looks through dir, which it closes: p on the disk, rel below the folder
// that is searched, name in replies.
func (s *searcher) dir(dir *os.Root, p place, rel, name string) error {
	defer dir.Close()
	names, err := sortedNames(dir)
	if err != nil {
		if rel != "." { // one that cannot be read is found itself
			return s.ctx.Err()
		}
		return err
	}
	in, err := handle(dir, ".")
	if err != nil {
		return err
	}
	defer in.Close()
	for _, child := range names {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		form := listed(names, child)
		below, full := join(rel, form), join(name, form)
		if _, temp := isTemp(child); temp || len(full) > 2*wire.MaxPath {
			continue
		}
		q := p.child(child)
		if q.node, err = lstatIn(in, child); err != nil {
			continue // it went
		}
		if s.o.name(below) {
			if err := s.one(dir, child, q, full); err != nil {
				return err
			}
		}
		if !q.node.mode.IsDir() || child == ".git" && !s.git {
			continue
		}
		sub, err := openReal(dir, child)
		if err != nil {
			continue // it went, was swapped, or cannot be read
		}
		if err := s.dir(sub, q, below, full); err != nil {
			return err
		}
	}
	return nil
}

// sortedNames are the names in a folder.
func sortedNames(dir *os.Root) ([]string, error) {
	var names []string
	err := eachEntry(dir, ".", func(_ *os.File, name string) error {
		names = append(names, name)
		return nil
	})
	slices.Sort(names)
	return names, err
}

// one looks at a name that fits.
func (s *searcher) one(dir *os.Root, name string, p place, full string) error {
	if s.o.text == nil {
		return s.hit(wire.Hit{Path: full, Kind: s.o.entry(s.o.asked, p, full).Kind})
	}
	if !p.node.mode.IsRegular() || p.node.size == 0 {
		return nil
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if n, err := lstatFile(f); err != nil || !n.mode.IsRegular() {
		return nil // something else has taken its place
	}
	return s.lines(f, full)
}

func (s *searcher) hit(h wire.Hit) error {
	if n := len(s.hits); h.Line > 0 && n > 0 && s.hits[n-1].Line == h.Line && s.hits[n-1].Path == h.Path {
		return nil // another piece of a long line
	}
	cost := 64 + 6*(len(h.Path)+len(h.Text))
	if len(s.hits) == s.o.p.Max || s.cost+cost > maxListFrame {
		return errEnough
	}
	s.hits, s.cost = append(s.hits, h), s.cost+cost
	return nil
}

// textHead is how much of a file tells whether it is text: it has no NUL.
const textHead = 8 << 10

// overlap is how much of a long line is looked at twice, so that a text is not
// missed where it was cut.
const overlap = 2 * wire.MaxText

// lines looks for the text in each line of f. A line that is longer than what
// is read at once is looked at in pieces.
func (s *searcher) lines(f *os.File, full string) error {
	if s.buf == nil {
		s.buf = make([]byte, pieceSize)
	}
	begin, line, have, first := time.Now(), 1, 0, true
	for {
		n, err := io.ReadFull(f, s.buf[have:])
		have += n
		end := err != nil // or what is left cannot be read
		if first && bytes.IndexByte(s.buf[:min(have, textHead)], 0) >= 0 {
			return nil
		}
		first = false
		whole, next := have, have // what is looked at now, to the end of a line; where it goes on
		if i := bytes.LastIndexByte(s.buf[:have], '\n'); i >= 0 && !end {
			whole, next = i+1, i+1
		} else if !end {
			next -= overlap
		}
		if err := s.piece(s.buf[:whole], full, line); err != nil {
			return err
		}
		if end {
			return nil
		}
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if time.Since(begin) > searchFile {
			s.more = true
			return nil
		}
		line += bytes.Count(s.buf[:whole], newline)
		have = copy(s.buf, s.buf[next:have])
	}
}

var newline = []byte{'\n'}

// piece looks for the text in whole lines, of which the first has that number.
func (s *searcher) piece(text []byte, full string, line int) error {
	prepared := s.o.text.prepare(text)
	for at := 0; at < len(text); {
		from, to := s.o.text.find(prepared[at:])
		if from < 0 {
			return nil
		}
		begin := at + from
		line += bytes.Count(text[at:begin], newline)
		end := len(text)
		if i := bytes.IndexByte(text[begin:], '\n'); i >= 0 {
			end = begin + i
		}
		start := bytes.LastIndexByte(text[:begin], '\n') + 1
		whole := bytes.TrimSuffix(text[start:end], []byte{'\r'})
		if s.o.text.confirms(whole) {
			if err := s.hit(wire.Hit{Path: full, Kind: "file", Line: line, Text: excerpt(whole, begin-start, at+to-start)}); err != nil {
				return err
			}
		}
		line++
		at = end + 1
	}
	return nil
}

// maxExcerpt is how much of a line a hit holds.
const maxExcerpt = 500

// excerpt is a line, or that part of a long one in which the text was found,
// cut at letters.
func excerpt(line []byte, from, to int) string {
	begin := 0
	if len(line) > maxExcerpt && to > maxExcerpt {
		begin = max(0, min(from-maxExcerpt/4, len(line)-maxExcerpt))
		for begin < len(line) && !utf8.RuneStart(line[begin]) {
			begin++
		}
	}
	// What is not UTF-8 takes more room once it is replaced.
	var b strings.Builder
	for rest := line[begin:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == 0 {
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > maxExcerpt {
			break
		}
		b.WriteRune(r)
		rest = rest[n:]
	}
	return b.String()
}

// matcher finds a text in lines.
type matcher struct {
	plain []byte
	folds bool           // plain is in small letters, and so is what prepare gives
	small []byte         // where it does
	line  *regexp.Regexp // as it was asked for
	many  *regexp.Regexp // finds where in many lines it may be; nil: line by line
}

// newMatcher is what a search looks for in files; nil for nothing.
func newMatcher(p *wire.FileSearch) (*matcher, error) {
	if p.Text == "" {
		return nil, nil
	}
	if !p.Regexp && strings.Contains(p.Text, "\n") {
		return nil, wire.Errorf(wire.CodeInvalid, "A text to search for is within one line, and this one has a line break.")
	}
	if !p.Regexp && !p.IgnoreCase {
		return &matcher{plain: []byte(p.Text)}, nil
	}
	if small := bytes.ToLower([]byte(p.Text)); !p.Regexp && !strings.ContainsFunc(p.Text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return &matcher{plain: small, folds: true}, nil
	}
	text := p.Text
	if !p.Regexp {
		text = regexp.QuoteMeta(text)
	}
	flags := ""
	if p.IgnoreCase {
		flags = "(?i)"
	}
	line, err := regexp.Compile(flags + text)
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeInvalid, "%s is not a regular expression that this computer understands (RE2's): %s.", shown(p.Text), reasonOf(err))
	}
	m := &matcher{line: line}
	// With (?m) whatever is in a line is found among many, too, but where ends
	// are asked for (of text, or before a carriage return) or flags are set.
	if !strings.Contains(text, `\A`) && !strings.Contains(text, `\z`) && !strings.ContainsRune(text, '$') && !strings.Contains(text, "(?") {
		m.many = regexp.MustCompile("(?m)" + flags + text)
	}
	return m, nil
}

func reasonOf(err error) string {
	_, reason, _ := strings.Cut(err.Error(), ": ")
	return fmt.Sprintf("%q", reason)
}

// prepare gives text as find takes it, of the same length.
func (m *matcher) prepare(text []byte) []byte {
	if !m.folds {
		return text
	}
	if m.small == nil {
		m.small = make([]byte, pieceSize)
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		m.small[i] = c
	}
	return m.small[:len(text)]
}

// find says where in text the next line may be that has it; -1 for none.
func (m *matcher) find(text []byte) (from, to int) {
	switch {
	case m.plain != nil:
		i := bytes.Index(text, m.plain)
		return i, i + len(m.plain)
	case m.many != nil:
		if at := m.many.FindIndex(text); at != nil {
			return at[0], at[1]
		}
		return -1, -1
	}
	for begin := 0; begin < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[begin:], '\n'); i >= 0 {
			end = begin + i
		}
		if at := m.line.FindIndex(bytes.TrimSuffix(text[begin:end], []byte{'\r'})); at != nil {
			return begin + at[0], begin + at[1]
		}
		begin = end + 1
	}
	return -1, -1
}

// confirms tells whether a line that was found among many has it by itself.
func (m *matcher) confirms(line []byte) bool { return m.many == nil || m.line.Match(line) }
