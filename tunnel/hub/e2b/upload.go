package e2b

import (
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"localpc/tunnel/wire"
)

const (
	// stall is how long a client may go without sending the next piece of an
	// upload, or taking the next piece of a download.
	stall = time.Minute
	// maxDrain is how much of a refused upload is still read, so that a client
	// that writes before it reads gets to see the answer.
	maxDrain = 64 << 20
	maxParts = 20_000 // files in one upload
	// metadataHeader begins the headers whose rest is a name of metadata.
	metadataHeader = "X-Metadata-"
)

type written struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// upload serves POST /files: one body with ?path=, or a form whose parts named
// "file" carry their paths as file names.
func (f *Face) upload(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := queryUser(q); err != nil {
		writeError(w, http.StatusUnauthorized, err.Error())
		return
	}
	body := &pausable{r: r.Body, rc: http.NewResponseController(w)}
	r.Body = body
	files, err := f.uploads(r, q)
	if err != nil {
		_, _ = io.CopyN(io.Discard, body, maxDrain)
		body.done()
		httpError(w, err)
		return
	}
	body.done()
	writeJSON(w, http.StatusOK, files)
}

func (f *Face) uploads(r *http.Request, q url.Values) ([]written, error) {
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		// It is unpacked as it is passed on; what bounds it is the computer's disk.
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, wire.Wrap(err, wire.CodeInvalid, "The upload is not packed with gzip, as it says.")
		}
		r.Body = z
	default:
		return nil, wire.Errorf(wire.CodeInvalid, "An upload can be packed with gzip only, not with %q.", encoding)
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		return f.form(r, q)
	}
	if q.Get("path") == "" {
		return nil, wire.Errorf(wire.CodeInvalid, "The path to write to is missing.")
	}
	one, err := f.write(r, q.Get("path"), r.Body)
	if err != nil {
		return nil, err
	}
	return []written{one}, nil
}

// metadata is what the headers of an upload say to keep with each file. Their
// names arrive in whatever letters the way makes of them.
func metadata(h http.Header) map[string]string {
	m := map[string]string{}
	for name, values := range h {
		if key, ok := strings.CutPrefix(name, metadataHeader); ok && key != "" {
			m[strings.ToLower(key)] = values[0]
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

func (f *Face) form(r *http.Request, q url.Values) ([]written, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, wire.Errorf(wire.CodeInvalid, "The form cannot be read.")
	}
	files, names := []written{}, map[string]bool{}
	for range maxParts {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			if len(files) == 0 {
				return nil, wire.Errorf(wire.CodeInvalid, "The form has no file in it.")
			}
			return files, nil
		}
		if err != nil {
			return nil, wire.Wrap(err, wire.CodeInvalid, "The form cannot be read.")
		}
		// Part.FileName keeps the last element only; here the name is a path.
		_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil || params["name"] != "file" {
			continue
		}
		name := params["filename"]
		if p := q.Get("path"); p != "" {
			if len(files) > 0 {
				return nil, wire.Errorf(wire.CodeInvalid, "One path was given for more than one file.")
			}
			name = p
		}
		if name == "" {
			return nil, wire.Errorf(wire.CodeInvalid, "A file in the form has no path.")
		}
		if names[name] {
			return nil, wire.Errorf(wire.CodeInvalid, "The form has two files for %s; the first was written.", name)
		}
		names[name] = true
		one, err := f.write(r, name, part)
		if err != nil {
			return nil, beside(len(files), err)
		}
		files = append(files, one)
	}
	return nil, wire.Errorf(wire.CodeInvalid, "The form has more than %d parts; what came before was written.", maxParts)
}

// beside is err of a file that others came before.
func beside(files int, err error) error {
	var e *wire.Error
	if files == 0 || !errors.As(err, &e) {
		return err
	}
	if files == 1 {
		return wire.Wrap(err, e.Code, "%s The file before it was written.", e.Message)
	}
	return wire.Wrap(err, e.Code, "%s The %d files before it were written.", e.Message, files)
}

// write sends one file to the machine as it comes in, and waits for the
// answer. The person is asked, if at all, when all of it is there.
func (f *Face) write(r *http.Request, name string, body io.Reader) (written, error) {
	c := callOf(r.Context())
	begun := &replay{r: body}
	var e *wire.Entry
	var late error // no room, and the body can't be sent anew
	err := f.inLine(r.Context(), c, forFiles, func() (err error) {
		begun.at = 0
		if e, err = f.writeOnce(r, c, name, begun); full(err) && begun.gone {
			late, err = err, nil
		}
		return err
	})
	if err = cmp.Or(err, late); err != nil {
		return written{}, err
	}
	return written{Name: e.Name, Path: e.Path, Type: "file", Metadata: e.Metadata}, nil
}

func (f *Face) writeOnce(r *http.Request, c *call, name string, body io.Reader) (*wire.Entry, error) {
	s, err := f.o.Backend.Do(r.Context(), c.sandbox, wire.TypeFileWrite, &wire.FileWrite{SessionID: c.sandbox.ID, Path: name, Metadata: metadata(r.Header), WaitMS: f.wait(c)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := sendAll(s, body); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	msg, err := s.Recv()
	if err != nil {
		return nil, err
	}
	stat, ok := msg.Payload.(*wire.FileStatResponse)
	if !ok || stat.Entry == nil {
		return nil, wire.Errorf(wire.CodeInternal, "The computer did not say what it wrote.")
	}
	return stat.Entry, nil
}

// maxReplay is more than is sent before a computer that has no room has said so.
const maxReplay = wire.InitialCredit + 2*wire.MaxChunk

// replay is a body that can be read anew while little of it has come.
type replay struct {
	r    io.Reader
	kept []byte
	at   int   // of kept, what comes next
	gone bool  // more has come than is kept
	err  error // of r: it follows what is kept
}

func (p *replay) Read(b []byte) (int, error) {
	switch {
	case p.at < len(p.kept):
		n := copy(b, p.kept[p.at:])
		p.at += n
		return n, nil
	case p.err != nil:
		return 0, p.err
	}
	n, err := p.r.Read(b)
	p.err = err
	if p.gone = p.gone || len(p.kept)+n > maxReplay; p.gone {
		p.kept, p.at = nil, 0
	} else {
		p.kept = append(p.kept, b[:n]...)
		p.at = len(p.kept)
	}
	return n, err
}

// sendAll sends body in chunks. io.EOF means that the machine has answered
// before the end.
func sendAll(s Stream, body io.Reader) error {
	buf := make([]byte, wire.MaxChunk)
	for {
		n, err := fill(body, buf)
		last := err == io.EOF
		if err != nil && !last {
			return wire.Wrap(err, wire.CodeInvalid, "The upload broke off.")
		}
		if err := s.Send(&wire.FileChunk{Data: buf[:n], Last: last}); err != nil || last {
			return err
		}
	}
}

// fill reads until buf is full. Unlike io.ReadFull it tells the end of the
// body (io.EOF) from a body that broke off, which must not become a file.
func fill(r io.Reader, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := r.Read(buf[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// pausable ends a body whose client has stopped sending. The time is taken off
// again, because it would end the reply too.
type pausable struct {
	r  io.ReadCloser
	rc *http.ResponseController
}

func (p *pausable) Read(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(stall))
	n, err := p.r.Read(b)
	if err != nil {
		p.done()
	}
	return n, err
}

func (p *pausable) Close() error { return p.r.Close() }

func (p *pausable) done() { _ = p.rc.SetReadDeadline(time.Time{}) }
