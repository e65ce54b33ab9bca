//go:build unix

package e2b_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

func TestSDKFiles(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	type entry struct {
		Name, Type, Path, Permissions, Owner, SymlinkTarget string
		Size                                                int64
		Mode                                                uint32
		ModifiedTime                                        time.Time
	}
	var got struct {
		Wrote                         entry
		Many                          []entry
		Text, Stream, Empty           string
		Bytes                         []int
		Blob, Big                     int
		Exists, Missing               bool
		Made, MadeAgain               bool
		List, Deep                    []entry
		File, Dir, Link               entry
		Moved                         entry
		Read, Info, ListGone, ReadDir *failure
		RemoveGone                    *failure
	}
	s.js(t, `
const s = await Sandbox.create(), f = s.files, r = {}
r.wrote = await f.write('a/b/hello.txt', 'hello')
r.many = await f.writeFiles([{ path: 'a/one.txt', data: '1' }, { path: '/home/user/a/zwei ü.txt', data: new Uint8Array([0, 255, 10]).buffer }, { path: 'a/three.txt', data: new Blob(['3']) }])
await f.write('a/stream.txt', new Blob(['from a stream']).stream())
r.text = await f.read('a/b/hello.txt')
r.bytes = [...await f.read('a/zwei ü.txt', { format: 'bytes' })]
r.blob = (await f.read('a/three.txt', { format: 'blob' })).size
r.stream = await new Response(await f.read('a/stream.txt', { format: 'stream' })).text()
await f.write('a/empty', ''); r.empty = await f.read('a/empty')
await f.write('big', 'x'.repeat(5_000_000)); r.big = (await f.read('big')).length; await f.remove('big')
r.exists = await f.exists('a/one.txt'); r.missing = await f.exists('a/none.txt')
r.made = await f.makeDir('new/dir'); r.madeAgain = await f.makeDir('new/dir')
await s.commands.run('ln -s a/one.txt link; ln -s nowhere dangling; mkfifo pipe')
r.list = await f.list('.'); r.deep = await f.list('a', { depth: 2 })
r.file = await f.getInfo('a/one.txt'); r.dir = await f.getInfo('a'); r.link = await f.getInfo('link')
r.moved = await f.rename('a/one.txt', 'a/moved.txt')
r.read = await failure(f.read('a/one.txt')); r.info = await failure(f.getInfo('a/one.txt')); r.listGone = await failure(f.list('none')); r.readDir = await failure(f.read('a'))
await f.remove('a'); r.removeGone = await failure(f.remove('a'))
out(r)
`, &got)
	if w := got.Wrote; w.Name != "hello.txt" || w.Path != "a/b/hello.txt" || w.Type != "file" {
		t.Errorf("wrote %+v", w)
	}
	if len(got.Many) != 3 || got.Many[1].Path != "/home/user/a/zwei ü.txt" || got.Many[1].Name != "zwei ü.txt" {
		t.Errorf("wrote many: %+v", got.Many)
	}
	if got.Text != "hello" || got.Stream != "from a stream" || got.Empty != "" || got.Blob != 1 || !slices.Equal(got.Bytes, []int{0, 255, 10}) || got.Big != 5_000_000 {
		t.Errorf("read %q, %q, %q, %d, %v, %d", got.Text, got.Stream, got.Empty, got.Blob, got.Bytes, got.Big)
	}
	if !got.Exists || got.Missing || !got.Made || got.MadeAgain {
		t.Errorf("exists %v, missing %v, made %v, again %v", got.Exists, got.Missing, got.Made, got.MadeAgain)
	}
	names := func(list []entry) string {
		var s []string
		for _, e := range list {
			s = append(s, e.Name+":"+e.Type)
		}
		return strings.Join(s, " ")
	}
	// A dangling link and a pipe are neither file nor directory, and the SDK
	// leaves them out.
	if n := names(got.List); n != "a:dir link:file new:dir" {
		t.Errorf("list: %s", n)
	}
	if n := names(got.Deep); n != "b:dir hello.txt:file empty:file one.txt:file stream.txt:file three.txt:file zwei ü.txt:file" {
		t.Errorf("deep list: %s", n)
	}
	if f := got.File; f.Size != 1 || f.Mode != 0o644 || f.Permissions != "-rw-r--r--" || f.Owner != "user" || time.Since(f.ModifiedTime) > time.Minute {
		t.Errorf("file: %+v", f)
	}
	if got.Dir.Permissions != "drwxr-xr-x" || got.Link.SymlinkTarget != "a/one.txt" || got.Link.Type != "file" {
		t.Errorf("dir %+v, link %+v", got.Dir, got.Link)
	}
	if got.Moved.Path != "a/moved.txt" || got.Moved.Type != "file" {
		t.Errorf("moved: %+v", got.Moved)
	}
	got.Read.is(t, "read of what is not there", "FileNotFoundError")
	got.Info.is(t, "getInfo of what is not there", "FileNotFoundError")
	got.ListGone.is(t, "list of what is not there", "FileNotFoundError")
	got.ReadDir.is(t, "read of a directory", "InvalidArgumentError")
	if got.RemoveGone != nil {
		t.Errorf("remove of what is not there: %+v", got.RemoveGone)
	}
}

// raw gives the headers of a sandbox that a client without the SDK uses.
func raw(t *testing.T, s *sdk, options ...string) http.Header {
	t.Helper()
	var got struct{ ID, Token string }
	s.js(t, `const s = await Sandbox.create(`+strings.Join(options, "")+`); out({ id: s.sandboxId, token: s.envdAccessToken })`, &got)
	return http.Header{"E2b-Sandbox-Id": {got.ID}, "X-Access-Token": {got.Token}}
}

// An upload of bytes is no call of the RPC library, whatever its size: it has
// no bound but the disk, and what is wrong with it is said as of all files.
func TestUploadsAreNoCalls(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	post := func(size int, h http.Header) (int, string) {
		req, err := http.NewRequest("POST", s.URL+"/sbx/files?path=large", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h.Clone()
		req.Header.Set("Content-Type", "application/octet-stream")
		return do(t, req)
	}
	if status, body := post(20<<20, h); status != http.StatusOK {
		t.Errorf("20 MiB: %d %s", status, body)
	} else if fi, err := os.Stat(filepath.Join(s.Dir, "large")); err != nil || fi.Size() != 20<<20 {
		t.Errorf("20 MiB: %v, %v", fi, err)
	}
	stranger := h.Clone()
	stranger.Set("X-Access-Token", "wrong")
	if status, body := post(1, stranger); status != http.StatusUnauthorized || !strings.Contains(body, `"code":401`) {
		t.Errorf("of a stranger: %d %s", status, body)
	}
	var none struct{}
	s.js(t, `await Sandbox.pause('`+h.Get("E2b-Sandbox-Id")+`'); out({})`, &none)
	if status, body := post(1, h); status != http.StatusPreconditionFailed || !strings.Contains(body, `"code":412`) {
		t.Errorf("to one that is paused: %d %s", status, body)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	if err := os.WriteFile(filepath.Join(s.Dir, "f"), []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ask    string
		status int
		body   string
		answer string
	}{
		{"", 200, "0123456789", ""},
		{"bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"bytes=7-", 206, "789", "bytes 7-9/10"},
		{"bytes=8-100", 206, "89", "bytes 8-9/10"},
		{"bytes=10-", 416, "", "bytes */10"},
		{"bytes=-3", 206, "789", "bytes 7-9/10"},
		{"bytes=-30", 206, "0123456789", "bytes 0-9/10"},
		{"bytes=-0", 416, "", "bytes */10"},
		{"bytes=5-2", 200, "0123456789", ""},
		{"bytes=0-1,4-5", 200, "0123456789", ""},
		{"bytes=-", 200, "0123456789", ""},
		{"lines=1-2", 200, "0123456789", ""},
	} {
		h.Set("Range", c.ask)
		r := get(t, s.URL+"/sbx/files?path=f", h)
		if r.status != c.status || c.body != "" && r.body != c.body || r.header.Get("Content-Range") != c.answer {
			t.Errorf("%q: %d %q, range %q", c.ask, r.status, r.body, r.header.Get("Content-Range"))
		}
		length := r.header.Get("Content-Length")
		if r = request(t, "HEAD", s.URL+"/sbx/files?path=f", h); r.status != c.status || r.body != "" || r.header.Get("Content-Range") != c.answer || c.status < 300 && r.header.Get("Content-Length") != length {
			t.Errorf("HEAD %q: %d %q, range %q, length %s, not %s", c.ask, r.status, r.body, r.header.Get("Content-Range"), r.header.Get("Content-Length"), length)
		}
	}
	h.Set("Range", "bytes=0-")
	h.Set("If-Range", `"another"`)
	if r := get(t, s.URL+"/sbx/files?path=f", h); r.status != 200 || r.header.Get("Last-Modified") == "" {
		t.Errorf("a part of what may be another file: %d %v", r.status, r.header)
	}
	h.Del("If-Range")
	if err := os.WriteFile(filepath.Join(s.Dir, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, ask := range []string{"bytes=0-", "bytes=-5", ""} {
		h.Set("Range", ask)
		if r := get(t, s.URL+"/sbx/files?path=empty", h); r.status != 200 || r.body != "" || r.header.Get("Content-Length") != "0" {
			t.Errorf("%q of an empty file: %d %q", ask, r.status, r.header)
		}
	}
	h.Del("Range")
	if r := get(t, s.URL+"/sbx/files", h); r.status != 400 || !strings.Contains(r.body, "The path to read is missing.") {
		t.Errorf("of no path: %d %s", r.status, r.body)
	}
	for path, status := range map[string]int{"none": 404, ".": 400} {
		if r := request(t, "HEAD", s.URL+"/sbx/files?path="+path, h); r.status != status {
			t.Errorf("HEAD of %s: %d, want %d", path, r.status, status)
		}
	}
}

// A file is packed where that is what is wished for, and not where it is only
// what a client's library can do.
func TestPackedDownload(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	text := strings.Repeat("packed ", 100_000)
	if err := os.WriteFile(filepath.Join(s.Dir, "f"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		accept, ranged string
		status         int
		packed         bool
	}{
		{"gzip", "", 200, true},
		{"GZIP;q=0.5", "", 200, true},
		{"gzip, identity", "", 200, true},
		{"gzip, deflate", "", 200, false},
		{"deflate, gzip, br, zstd", "", 200, false},
		{"", "", 200, false},
		{"identity", "", 200, false},
		{"*", "", 200, false},
		{"gzip;q=0", "", 200, false},
		{"br", "", 200, false},
		{"gzip", "bytes=0-6", 206, false},
		{"gzip, deflate, identity;q=0", "", 200, true},
		{"*, identity;q=0", "", 200, true},
		{"identity;q=0", "", 406, false},
		{"br, identity;q=0", "", 406, false},
		{"br, *;q=0", "", 406, false},
		{"gzip;q=0, identity;q=0", "", 406, false},
	} {
		h["Accept-Encoding"] = []string{c.accept}
		h["Range"] = nil
		if c.ranged != "" {
			h.Set("Range", c.ranged)
		}
		r := get(t, s.URL+"/sbx/files?path=f", h)
		if r.status != c.status || (r.header.Get("Content-Encoding") == "gzip") != c.packed {
			t.Errorf("%q: %d, encoding %q", c.accept, r.status, r.header.Get("Content-Encoding"))
			continue
		}
		body := r.body
		if c.packed {
			if len(body) > len(text)/10 || r.header.Get("Content-Length") != "" {
				t.Errorf("%q: %d bytes, length %q", c.accept, len(body), r.header.Get("Content-Length"))
			}
			z, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			body = string(data)
		}
		if c.status == 200 && body != text || c.status == 206 && body != text[:7] {
			t.Errorf("%q: %d bytes of another text", c.accept, len(body))
		}
	}
}

// Programs write and read many files at once, and SDKs send each one that is
// packed by itself. A computer that has no room for all of them makes them wait.
func TestSDKManyFilesAtOnce(t *testing.T) {
	t.Parallel()
	slow := func(_ context.Context, m wire.Message) error {
		switch m.Type {
		case wire.TypeFileWrite, wire.TypeFileRead, wire.TypeFileStat, wire.TypeFileList, wire.TypeFileMkdir, wire.TypeFileDelete:
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}
	for _, version := range versions {
		s := newSDK(t, slow, func(_ *hub.Options, o *tunnel.Options) { o.MaxConcurrent = 8 })
		s.version = version
		var got struct {
			Wrote, Read, Asked, Listed, Made, Packed, Large, Removed int
			Why                                                      []string
		}
		s.js(t, `
const s = await Sandbox.create(), f = s.files, r = { why: [] }
const all = async (n, call) => {
  const ends = await Promise.allSettled([...Array(n).keys()].map(call))
  for (const e of ends) if (e.status == 'rejected') r.why.push(e.reason.constructor.name + ': ' + e.reason.message)
  return ends.filter(e => e.status == 'fulfilled' && e.value).length
}
r.wrote = await all(60, i => f.write('d/' + i, 'of ' + i))
r.read = await all(60, async i => await f.read('d/' + i) == 'of ' + i)
r.asked = await all(60, async i => (await f.getInfo('d/' + i)).name == String(i))
r.listed = await all(20, async () => (await f.list('d')).length == 60)
r.made = await all(20, i => f.makeDir('m/' + i))
r.packed = '`+s.version+`' == 'e2b-2.15' ? 60 : (await f.write([...Array(60).keys()].map(i => ({ path: 'p/' + i, data: 'packed '.repeat(1000) })), { gzip: true }).catch(e => (r.why.push(e.message), []))).length
const large = 'x'.repeat(3_000_000)
r.large = await all(12, async i => { await f.write('l/' + i, large); return (await f.read('l/' + i)).length == large.length })
r.removed = await all(60, async i => { await f.remove('d/' + i); return true })
r.why = [...new Set(r.why)]
out(r)`, &got)
		if got.Wrote != 60 || got.Read != 60 || got.Asked != 60 || got.Listed != 20 || got.Made != 20 || got.Packed != 60 || got.Large != 12 || got.Removed != 60 {
			t.Errorf("%s: %+v", version, got)
		}
	}
}

// What an upload says of itself is kept with the file, and told again; packed
// ones are unpacked; forms take their files one after the other.
func TestUploads(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		z.Close()
		return b.String()
	}
	const form = "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n\r\none\r\n" +
		"--X\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nnot a file\r\n" +
		"--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n\r\ntwo\r\n--X--\r\n"
	post := func(query, kind, encoding, body string) (int, string) {
		req, err := http.NewRequest("POST", s.URL+"/sbx/files"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h.Clone()
		req.Header.Set("Content-Type", kind)
		if encoding != "" {
			req.Header.Set("Content-Encoding", encoding)
		}
		req.Header.Set("X-Metadata-Author", "Ann")
		req.Header.Set("x-metadata-two.words", "a b")
		req.Header.Set("X-Metadata-", "nothing")
		return do(t, req)
	}
	const octets, multi = "application/octet-stream", "multipart/form-data; boundary=X"
	for _, c := range []struct{ query, kind, encoding, body, file, want string }{
		{"?path=a/plain", octets, "", "text", "a/plain", "text"},
		{"?path=packed", octets, "gzip", pack("unpacked"), "packed", "unpacked"},
		{"?path=as-it-is", octets, "identity", "same", "as-it-is", "same"},
		{"", multi, "", fmt.Sprintf(form, "b/one", "b/two"), "b/two", "two"},
		{"", multi, "gzip", pack(fmt.Sprintf(form, "c/one", "c/two%22%0A")), "c/two%22%0A", "two"},
		{"?path=", multi, "", fmt.Sprintf(form, "d/one", "d/t w+o#&.txt"), "d/t w+o#&.txt", "two"},
		{"?path=%2Fhome%2Fuser%2Fe+%26+f", octets, "", "x", "e & f", "x"},
	} {
		status, body := post(c.query, c.kind, c.encoding, c.body)
		data, err := os.ReadFile(filepath.Join(s.Dir, c.file))
		if status != 200 || err != nil || string(data) != c.want || !strings.Contains(body, `"metadata":{"author":"Ann","two.words":"a b"}`) {
			t.Errorf("%s %s: %d %s, %q, %v", c.query, c.encoding, status, body, data, err)
		}
	}
	for what, c := range map[string]struct{ query, kind, encoding, body string }{
		"the same file twice":    {"", multi, "", fmt.Sprintf(form, "same", "same")},
		"not packed":             {"?path=bad", octets, "gzip", "text"},
		"packed, and cut off":    {"?path=bad", octets, "gzip", pack(strings.Repeat("long ", 1000))[:40]},
		"packed in another way":  {"?path=bad", octets, "br", "text"},
		"packed in an older way": {"?path=bad", octets, "deflate", "text"},
	} {
		if status, body := post(c.query, c.kind, c.encoding, c.body); status != 400 {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "bad")); err == nil {
		t.Error("a bad upload became a file")
	}
	// Where one of several fails, it is said what became of those before.
	if status, body := post("", multi, "", fmt.Sprintf(form, "g/one", "g")); status != 400 || !strings.Contains(body, " The file before it was written.") {
		t.Errorf("a folder's name as the second of two: %d %s", status, body)
	}
	var many strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&many, "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"many/%d\"\r\n\r\n%d\r\n", i, i)
	}
	if status, body := post("", multi, "", many.String()+"--X--\r\n"); status != 200 {
		t.Errorf("1500 files: %d %.200s", status, body)
	} else if data, err := os.ReadFile(filepath.Join(s.Dir, "many", "1499")); err != nil || string(data) != "1499" {
		t.Errorf("the last of 1500 files: %q, %v", data, err)
	}
}

func TestUploadBadInput(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	form := func(parts ...string) string {
		b := ""
		for _, p := range parts {
			b += "--X\r\nContent-Disposition: form-data; " + p + "\r\n\r\ndata\r\n"
		}
		return b + "--X--\r\n"
	}
	for _, c := range []struct {
		name, query, kind, encoding, body string
		status                            int
	}{
		{"no path", "", "application/octet-stream", "", "x", 400},
		{"an empty form", "", "multipart/form-data; boundary=X", "", form(), 400},
		{"no file in the form", "", "multipart/form-data; boundary=X", "", form(`name="other"; filename="a"`), 400},
		{"a file without a name", "", "multipart/form-data; boundary=X", "", form(`name="file"`), 400},
		{"one path, two files", "?path=a", "multipart/form-data; boundary=X", "", form(`name="file"; filename="a"`, `name="file"; filename="b"`), 400},
		{"a form without a boundary", "", "multipart/form-data", "", "x", 400},
		{"a form that breaks off", "?path=half", "multipart/form-data; boundary=X", "", "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"half\"\r\n\r\nda", 400},
		{"a path too long", "?path=" + strings.Repeat("p", 5000), "application/octet-stream", "", "x", 400},
		{"a path with NUL", "?path=a%00b", "application/octet-stream", "", "x", 400},
		{"not packed as it says", "?path=a", "application/octet-stream", "gzip", "x", 400},
		{"another user", "?path=a&username=root", "application/octet-stream", "", "x", 401},
	} {
		req, err := http.NewRequest("POST", s.URL+"/sbx/files"+c.query, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h.Clone()
		req.Header.Set("Content-Type", c.kind)
		if c.encoding != "" {
			req.Header.Set("Content-Encoding", c.encoding)
		}
		if status, body := do(t, req); status != c.status || !strings.Contains(body, `"message":"`) {
			t.Errorf("%s: %d %s, want %d", c.name, status, body, c.status)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "half")); err == nil {
		t.Error("half an upload became a file")
	}
}

// A client that dies in the middle of its upload leaves nothing behind.
func TestUploadBreaksOff(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	for _, length := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
		u, _ := url.Parse(s.URL)
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /sbx/files?path=half HTTP/1.1\r\nHost: %s\r\nE2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n%s\r\n\r\n5\r\nhello\r\n", u.Host, h.Get("E2b-Sandbox-Id"), h.Get("X-Access-Token"), length)
		time.Sleep(100 * time.Millisecond)
		conn.Close()
	}
	// A request of its own afterwards shows that the machine is done with them.
	if r := get(t, s.URL+"/sbx/files?path=none", h); r.status != 404 {
		t.Errorf("read afterwards: %d %s", r.status, r.body)
	}
	time.Sleep(100 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(s.Dir, "half")); err == nil {
		t.Error("half an upload became a file")
	}
}

// An upload that is refused at its start still gets its answer, whatever its
// client goes on to send.
func TestUploadRefusedEarly(t *testing.T) {
	t.Parallel()
	s := newSDK(t, func(_ context.Context, m wire.Message) error { return nil })
	h := raw(t, s)
	req, _ := http.NewRequest("POST", s.URL+"/sbx/files?path=a%00b", io.LimitReader(zeros{}, 20<<20))
	req.Header = h
	if status, body := do(t, req); status != 400 || !strings.Contains(body, "NUL") {
		t.Errorf("%d %s", status, body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Every call to a sandbox needs its token.
func TestSandboxDoors(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	for name, change := range map[string]func(http.Header){
		"no token":            func(h http.Header) { h.Del("X-Access-Token") },
		"the key instead":     func(h http.Header) { h.Set("X-Access-Token", s.Key) },
		"another token":       func(h http.Header) { h.Set("X-Access-Token", strings.Repeat("0", 64)) },
		"another sandbox":     func(h http.Header) { h.Set("E2b-Sandbox-Id", "i0") },
		"no sandbox":          func(h http.Header) { h.Del("E2b-Sandbox-Id") },
		"a machine's token":   func(h http.Header) { h.Set("X-Access-Token", s.Token) },
		"only the API's key":  func(h http.Header) { h.Del("X-Access-Token"); h.Set("X-API-KEY", s.Key) },
		"a signature of none": func(h http.Header) { h.Del("X-Access-Token") },
	} {
		for _, path := range []string{"/files?path=x", "/files?path=x&signature=v1_x", "/health", "/", "/init", "/process.Process/List"} {
			bad := h.Clone()
			change(bad)
			if r := get(t, s.URL+"/sbx"+path, bad); r.status != 401 || !strings.Contains(r.body, `"code":401`) {
				t.Errorf("%s, %s: %d %s", name, path, r.status, r.body)
			}
		}
	}
	if r := get(t, s.URL+"/sbx/health", h); r.status != 204 {
		t.Errorf("health with the token: %d", r.status)
	}
	id := h.Get("E2b-Sandbox-Id")
	if r := get(t, s.URL+"/sbx/by-id/"+id+"/health", http.Header{"X-Access-Token": h["X-Access-Token"]}); r.status != 204 {
		t.Errorf("health by address: %d", r.status)
	}
	h.Set("E2b-Sandbox-Port", "3000")
	if r := get(t, s.URL+"/sbx/", h); r.status != 404 || !strings.Contains(r.body, "Ports") {
		t.Errorf("another port: %d %s", r.status, r.body)
	}
	h.Del("E2b-Sandbox-Port")
	h.Set("Connect-Timeout-Ms", "soon")
	if r := get(t, s.URL+"/sbx/health", h); r.status != 400 {
		t.Errorf("odd timeout: %d %s", r.status, r.body)
	}
}

type response struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, u string, h http.Header) response {
	t.Helper()
	return request(t, "GET", u, h)
}

func request(t *testing.T, method, u string, h http.Header) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		req.Header = h.Clone()
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(body)}
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// client keeps no connections, so that none outlives its test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
