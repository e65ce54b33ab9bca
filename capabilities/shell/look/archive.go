package look

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"localpc/capabilities/shell/judge"
)

// maxZip is how large a zip may be whose directory is read here: it is held in
// memory.
const maxZip = 16 << 20

// entry is one name in an archive.
type entry struct {
	name      string
	dir, link bool
}

// extract counts what an archive makes, and what of it is there already.
func (l *looker) extract(a judge.Act, p judge.Part) {
	into := target{way: unsure}
	if a.Into != nil {
		into.seen = a.Into.Name
		into.spot, into.way = l.resolve(written(*a.Into), true)
	}
	if into.way == outside {
		l.noteOutside(replaces, into.seen)
		return
	}
	strip, plain, sure := unpacking(p.Argv)
	entries, ok := l.archive(a)
	if into.way != in || !ok || !sure {
		if l.more() {
			l.tally(replaces, func(y *tally) { y.more = true })
		} else {
			l.note(unknown, "what the archive has")
		}
		l.over.fog = append(l.over.fog, into.spot.keyOr())
		return
	}
	if !plain {
		// It may take a part of it only, or under other names.
		l.tally(replaces, func(y *tally) { y.may = true })
		l.over.fog = append(l.over.fog, into.spot.key())
	}
	x := &unpacker{l: l, into: into.spot, dirs: map[string]target{}}
	for _, e := range entries {
		comps := strings.Split(path.Clean("/" + e.name)[1:], "/")
		if len(comps) <= strip || comps[strip] == "" {
			continue
		}
		if !l.step() {
			break
		}
		x.one(e, comps[strip:], a.Replaces)
	}
	if l.more() {
		l.tally(creates, func(y *tally) { y.more = true })
	}
}

func (s spot) keyOr() string {
	if s.base == nil {
		return ""
	}
	return s.key()
}

// unpacker finds the places of entries, each folder once.
type unpacker struct {
	l    *looker
	into spot
	dirs map[string]target
}

func (x *unpacker) one(e entry, comps []string, replace bool) {
	l := x.l
	last := len(comps) - 1
	dir := x.folder(comps[:last])
	if dir.way != in {
		l.elsewhere(replaces, dir)
		return
	}
	to := l.child(dir.spot, comps[last])
	switch {
	case !to.there && to.made != 0:
	case !to.there:
		m := madeFile
		if e.dir {
			m = madeDir
		} else if e.link {
			m = madeUnsure
		}
		l.make(to, m)
	case e.dir && to.isDir() || !replace:
		l.nothing(replaces, to)
	case to.node.mode.IsDir():
		// Only an empty one makes room.
		l.nothing(replaces, to)
	default:
		l.op(replaces, to)
		l.hit(replaces, to)
		if e.link {
			l.over.gone(to)
			l.over.made[to.key()] = madeUnsure
		}
	}
}

// folder finds, or makes, a folder of the archive.
func (x *unpacker) folder(comps []string) target {
	if len(comps) == 0 {
		return target{spot: x.into, way: in}
	}
	k := strings.Join(comps, "/")
	if t, ok := x.dirs[k]; ok {
		return t
	}
	t := x.folder(comps[:len(comps)-1])
	if t.way == in {
		t.seen = k
		name := comps[len(comps)-1]
		s := x.l.child(t.spot, name)
		if s.there && s.node.isLink() {
			t.spot, t.way = x.l.walkTo((&glob{l: x.l}).trail(t.spot), []string{name}, true)
		} else {
			if !s.there && s.made == 0 {
				x.l.make(s, madeDir)
				s.made = madeDir
			}
			t.spot = s
		}
	}
	x.dirs[k] = t
	return t
}

// unpacking reads the options that decide the names. plain: all of the archive
// is unpacked, under its own names but for the first strip parts of them; sure
// is false where the names are others.
func unpacking(argv []string) (strip int, plain, sure bool) {
	if len(argv) == 0 {
		return 0, false, true
	}
	switch path.Base(argv[0]) {
	case "tar":
		return untar(argv[1:])
	case "unzip":
		return 0, zipPlain.MatchString(strings.Join(argv[1:], "\x00")), !slices.ContainsFunc(argv[1:], func(a string) bool {
			return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "jL")
		})
	}
	return 0, false, len(argv) > 1 && argv[1] == "x"
}

var (
	zipPlain = regexp.MustCompile(`^(-[oqn]+\x00)*[^-\x00][^\x00]*(\x00-[oqn]+)*(\x00-d\x00[^\x00]+)?$`)
	tarFlags = regexp.MustCompile(`^-?[xvzjJapkf]+$`)
)

func untar(args []string) (strip int, plain, sure bool) {
	plain, sure = true, true
	operands := 0
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch name, value, has := strings.Cut(a, "="); {
		case name == "--strip-components":
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
			n, err := strconv.Atoi(value)
			strip, sure = n, sure && err == nil && n >= 0
		case (i == 0 || strings.HasPrefix(a, "-")) && tarFlags.MatchString(a):
			if strings.HasSuffix(a, "f") {
				i++ // the archive
			}
			plain = plain && !strings.Contains(strings.TrimSuffix(a, "f"), "f")
		case a == "-C" || a == "--directory" || a == "--file":
			i++
		case name == "--directory" || name == "--file" || a == "--extract" || a == "--verbose" || a == "--gzip" || a == "--no-same-owner" || a == "--overwrite" || a == "--keep-old-files":
		case strings.HasPrefix(a, "-"):
			plain = false
		default:
			operands++
		}
	}
	return strip, plain && operands == 0, sure
}

// archive lists what is in the archive of an act.
func (l *looker) archive(a judge.Act) ([]entry, bool) {
	if len(a.From) == 0 || a.From[0].Glob {
		return nil, false
	}
	s, w := l.resolve(written(a.From[0]), true)
	if w != in || !s.there || !s.node.mode.IsRegular() {
		if w == in && !s.there && s.made == 0 {
			l.nothing(reads, s)
			return nil, true // it fails
		}
		return nil, false
	}
	l.print.add("archive", s.disk(), s.node.state())
	f, err := s.on.root.OpenFile(s.at, readFlags, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	entries, err := l.entries(f)
	if errors.Is(err, errAsk) {
		return l.askArchive(a, s)
	}
	if l.ctx.Err() != nil {
		l.late = true
	}
	return entries, err == nil || errors.Is(err, errMany)
}

var (
	errAsk  = errors.New("a program has to be asked")
	errMany = errors.New("more than are looked at")
)

// entries reads the kinds of archives that need no program.
func (l *looker) entries(f *os.File) ([]entry, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(slow{l.ctx, f}, 64<<10)
	head, _ := in.Peek(512)
	switch {
	case bytes.HasPrefix(head, []byte("PK")):
		if fi.Size() > maxZip {
			return nil, errAsk
		}
		z, err := zip.NewReader(f, fi.Size())
		if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
			return nil, err
		}
		var out []entry
		for _, e := range z.File {
			if len(out) >= l.o.Max {
				l.full = true
				return out, errMany
			}
			m := e.Mode()
			out = append(out, entry{strings.ReplaceAll(e.Name, `\`, "/"), m.IsDir(), !m.IsDir() && !m.IsRegular()})
		}
		return out, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		return l.tar(z)
	case bytes.HasPrefix(head, []byte("BZh")):
		return l.tar(bzip2.NewReader(in))
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return l.tar(in)
	}
	return nil, errAsk
}

func (l *looker) tar(in io.Reader) ([]entry, error) {
	var out []entry
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return out, err
		}
		if len(out) >= l.o.Max {
			l.full = true
			return out, errMany
		}
		out = append(out, entry{h.Name, h.Typeflag == tar.TypeDir, h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg})
	}
}

// slow ends a read of something large when the time is over.
type slow struct {
	ctx context.Context
	in  io.Reader
}

func (s slow) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.in.Read(p)
}

var tarLine = regexp.MustCompile(`^([-dlhbcp])\S{9}\S* +\S+ +\d+(?:,\d+)? \S+ \S+ (.*)$`)

// askArchive has tar or unzip list an archive that can't be read here.
func (l *looker) askArchive(a judge.Act, s spot) ([]entry, bool) {
	seen := written(a.From[0])
	if len(a.Argv) > 0 && path.Base(a.Argv[0]) == "unzip" {
		out, ok := l.ask(a.Dir, []string{"unzip", "-Z1", seen})
		var list []entry
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			// It does not tell of links.
			list = append(list, entry{line, strings.HasSuffix(line, "/"), !strings.HasSuffix(line, "/")})
		}
		return list, ok
	}
	out, ok := l.ask(a.Dir, []string{"tar", "--list", "--verbose", "--numeric-owner", "--full-time", "--quoting-style=literal", "--file", seen})
	var list []entry
	for line := range strings.Lines(string(out)) {
		m := tarLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return nil, false
		}
		name, _, _ := strings.Cut(m[2], " -> ")
		name, _, _ = strings.Cut(name, " link to ")
		list = append(list, entry{name, m[1] == "d", m[1] != "d" && m[1] != "-"})
	}
	return list, ok
}

// ask runs a command that only reads; false where it can't, or fails.
func (l *looker) ask(dir string, argv []string) ([]byte, bool) {
	if l.o.Ask == nil || l.more() {
		return nil, false
	}
	if dir == "" {
		dir = "/"
	}
	out, err := l.o.Ask(l.ctx, dir, argv)
	if l.ctx.Err() != nil {
		l.late = true
		return nil, false
	}
	if err != nil {
		l.print.add("asked", "failed")
		return nil, false
	}
	return out, true
}
