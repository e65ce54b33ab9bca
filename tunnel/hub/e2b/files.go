package e2b

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"localpc/tunnel/wire"
)

const (
	// pause is how long a client may go without sending the next piece of an
	// upload, or taking the next piece of a download.
	pause = time.Minute
	// maxDrain is how much of a refused upload is still read, so that a client
	// that writes before it reads gets to see the answer.
	maxDrain = 64 << 20
	maxParts = 1000 // files in one upload
)

// download serves GET /files?path=.
func (f *Face) download(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Allow", "GET, POST")
		writeError(w, http.StatusMethodNotAllowed, "A file is read with GET; whether it is there is asked with Stat.")
		return
	}
	q := r.URL.Query()
	if err := queryUser(q); err != nil {
		writeError(w, http.StatusUnauthorized, err.Error())
		return
	}
	c := callOf(r.Context())
	req := &wire.FileRead{SessionID: c.sandbox.ID, Path: q.Get("path"), WaitMS: f.wait(c)}
	ranged := parseRange(r.Header.Get("Range"), req)
	s, err := f.o.Backend.Do(r.Context(), c.sandbox, wire.TypeFileRead, req)
	if err != nil {
		httpError(w, err)
		return
	}
	defer s.Close()
	msg, err := s.Recv()
	if err != nil {
		httpError(w, err)
		return
	}
	head, ok := msg.Payload.(*wire.FileContents)
	if !ok {
		httpError(w, wire.Errorf(wire.CodeInternal, "The computer did not say how long the file is."))
		return
	}
	h := w.Header()
	if ranged && req.Offset >= head.Size {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", head.Size))
		writeError(w, http.StatusRequestedRangeNotSatisfiable, "The file is shorter than that.")
		return
	}
	// A file of the person's never becomes a page of this hub.
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", disposition(req.Path))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Length", strconv.FormatInt(head.Length, 10))
	h.Set("Accept-Ranges", "bytes")
	if ranged {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", req.Offset, req.Offset+head.Length-1, head.Size))
		w.WriteHeader(http.StatusPartialContent)
	}
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	sent := int64(0)
	for {
		msg, err := s.Recv()
		if err == nil {
			_ = rc.SetWriteDeadline(time.Now().Add(pause))
			chunk, ok := msg.Payload.(*wire.FileChunk)
			if !ok && sent == head.Length {
				return // ACK
			}
			if ok {
				var n int
				n, err = w.Write(chunk.Data)
				sent += int64(n)
			} else {
				err = io.ErrUnexpectedEOF
			}
		}
		if err != nil {
			f.o.Log.Info("Download ended early", "session", c.sandbox.ID, "err", err)
			// The headers are out: only a broken connection tells the client.
			panic(http.ErrAbortHandler)
		}
	}
}

// parseRange reads one range with a start; other kinds are left out, and the
// whole file is sent.
func parseRange(s string, req *wire.FileRead) bool {
	spec, ok := strings.CutPrefix(s, "bytes=")
	from, to, ok2 := strings.Cut(spec, "-")
	if !ok || !ok2 {
		return false
	}
	start, err := strconv.ParseInt(from, 10, 63)
	if err != nil || start < 0 {
		return false
	}
	if to != "" {
		end, err := strconv.ParseInt(to, 10, 63)
		if err != nil || end < start {
			return false
		}
		n := end - start + 1
		req.Length = &n
	}
	req.Offset = start
	return true
}

func disposition(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}); d != "" {
		return d
	}
	return "attachment"
}

type written struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Type string `json:"type"`
}

// upload serves POST /files: one body with ?path=, or a form whose parts named
// "file" carry their paths as file names.
func (f *Face) upload(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := queryUser(q); err != nil {
		writeError(w, http.StatusUnauthorized, err.Error())
		return
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		writeError(w, http.StatusUnsupportedMediaType, "Compressed uploads are not offered by this hub yet.")
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
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		return f.form(r, q)
	}
	if !q.Has("path") {
		return nil, wire.Errorf(wire.CodeInvalid, "The path to write to is missing.")
	}
	one, err := f.write(r, q.Get("path"), r.Body)
	if err != nil {
		return nil, err
	}
	return []written{one}, nil
}

func (f *Face) form(r *http.Request, q url.Values) ([]written, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, wire.Errorf(wire.CodeInvalid, "The form cannot be read.")
	}
	files := []written{}
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
		if q.Has("path") {
			if len(files) > 0 {
				return nil, wire.Errorf(wire.CodeInvalid, "One path was given for more than one file.")
			}
			name = q.Get("path")
		}
		if name == "" {
			return nil, wire.Errorf(wire.CodeInvalid, "A file in the form has no path.")
		}
		one, err := f.write(r, name, part)
		if err != nil {
			return nil, err
		}
		files = append(files, one)
	}
	return nil, wire.Errorf(wire.CodeInvalid, "The form has more than %d parts.", maxParts)
}

// write sends one file to the machine as it comes in, and waits for the
// answer. The person is asked, if at all, when all of it is there.
func (f *Face) write(r *http.Request, name string, body io.Reader) (written, error) {
	c := callOf(r.Context())
	s, err := f.o.Backend.Do(r.Context(), c.sandbox, wire.TypeFileWrite, &wire.FileWrite{SessionID: c.sandbox.ID, Path: name, WaitMS: f.wait(c)})
	if err != nil {
		return written{}, err
	}
	defer s.Close()
	if err := sendAll(s, body); err != nil && !errors.Is(err, io.EOF) {
		return written{}, err
	}
	msg, err := s.Recv()
	if err != nil {
		return written{}, err
	}
	stat, ok := msg.Payload.(*wire.FileStatResponse)
	if !ok || stat.Entry == nil {
		return written{}, wire.Errorf(wire.CodeInternal, "The computer did not say what it wrote.")
	}
	return written{Name: stat.Entry.Name, Path: stat.Entry.Path, Type: "file"}, nil
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
	_ = p.rc.SetReadDeadline(time.Now().Add(pause))
	n, err := p.r.Read(b)
	if err != nil {
		p.done()
	}
	return n, err
}

func (p *pausable) Close() error { return p.r.Close() }

func (p *pausable) done() { _ = p.rc.SetReadDeadline(time.Time{}) }
