# Two commands matter: "make run" starts the program, "make test" tests it.
# Both install what they lack on Debian and Ubuntu (with sudo where needed).

GO    ?= go
FLAGS := -tags gles
BIN   := build/bin

PROGRAMS := localpc localpc-desktop localpc-spawn localpc-hub

# What building the windows needs, and what running contained commands needs.
BUILD_PACKAGES := gcc pkg-config libgl1-mesa-dev libgles2-mesa-dev libegl-dev libx11-dev libxcursor-dev libxrandr-dev \
	libxinerama-dev libxi-dev libxtst-dev libxxf86vm-dev libturbojpeg0-dev bubblewrap ca-certificates
# What the tests play a person with.
TEST_PACKAGES := xvfb xserver-xephyr openbox xfce4-panel xfconf dbus dbus-x11 xdotool imagemagick gnome-keyring gcr libsecret-tools desktop-file-utils libglib2.0-bin dunst xterm xclip scrot libgtk-3-bin xdg-utils attr \
	sway wev grim xdg-desktop-portal xdg-desktop-portal-wlr xdg-desktop-portal-gtk xdg-desktop-portal-gnome mutter pipewire wireplumber gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-pipewire \
	tesseract-ocr tesseract-ocr-eng x11-utils x11-xserver-utils x11-xkb-utils xinput python3-gi gir1.2-gtk-3.0 fonts-dejavu-core procps util-linux python3-minimal less vim-tiny nginx-light systemd iproute2 iptables squid tinyproxy chromium chromium-headless-shell debootstrap binutils xz-utils unzip bzip2 git curl wget

VERSION = $(shell sed -n 's/^const version = "\(.*\)"/\1/p' app/cmd/localpc/main.go)
ARCH    = $(shell $(GO) env GOARCH)
# What is packaged bears the time of its commit, so that the same commit makes
# the same package.
DATE    = $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
NFPM    := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2

.PHONY: run build test packages whole lint others bench screenshots package run-packages test-packages npm clean

run: run-packages build
	$(BIN)/localpc run $(ARGS)

# One set of flags everywhere, so that each program is compiled once.
build:
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build $(FLAGS) -o $(BIN)/ ./app/cmd/localpc-spawn ./app/cmd/localpc-hub
	$(GO) build $(FLAGS) -o $(BIN)/ ./app/cmd/localpc ./app/cmd/localpc-desktop

# What only computes runs beside the tests of packages, which wait half of the
# time, and gives way to them. The whole path comes last and alone: it needs
# the two cores that a person's computer has for itself.
test: test-packages npm
	@rm -f build/times.txt build/*.began
	@$(MAKE) --no-print-directory -j3 BESIDE='nice -n 19' packages lint others && $(MAKE) --no-print-directory whole; \
		status=$$?; cat build/times.txt; \
		test $$status = 0 || echo "Failed:" $$(basename -as .began build/*.began); exit $$status

# Half as many packages again as there are cores: many of their tests wait. vet
# is part of lint.
SIDE_BY_SIDE = $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2))
packages:
	@$(began)
	$(GO) test $(FLAGS) -race -vet=off -timeout 20m -p $(SIDE_BY_SIDE) $$($(GO) list $(FLAGS) ./... | grep -v /app/cmd/localpc$$)
	@$(took)

whole:
	@$(began); rm -f build/cards.txt
	$(GO) test $(FLAGS) -race -vet=off -timeout 40m ./app/cmd/localpc
	@cat build/cards.txt; $(took)

lint: run-packages
	@$(began)
	@out=$$(gofmt -l app assets capabilities consent tunnel); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	$(BESIDE) $(GO) vet $(FLAGS) ./...
	$(BESIDE) $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 $(FLAGS) ./app/... ./assets/... ./capabilities/... ./consent/... ./tunnel/...
	@$(took)

# Other systems stay possible: what has neither Fyne nor cgo is vetted for
# macOS, and all programs are built for Windows.
CROSS := gcc-mingw-w64-x86-64
others: run-packages
	@$(call install,$(CROSS))
	@$(began)
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(BESIDE) $(GO) vet $$($(GO) list ./... | grep -Ev '/app/(ui|tray|apptest)|/app/cmd/localpc(-desktop)?$$')
	@mkdir -p build/windows
	GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc $(BESIDE) $(GO) build -o build/windows/ $(PROGRAMS:%=./app/cmd/%)
	@$(took)

# The E2B SDK as published drives the end-to-end tests.
npm:
	@for d in $$(git ls-files '*/package-lock.json' | xargs -r -n1 dirname); do \
		test $$d/node_modules/.package-lock.json -nt $$d/package-lock.json || (cd $$d && npm ci --no-audit --no-fund) || exit 1; done

run-packages:
	@$(call install,$(BUILD_PACKAGES))

test-packages:
	@$(call install,$(BUILD_PACKAGES) $(TEST_PACKAGES) $(CROSS))

# What a command, the idle program and a picture of the screen cost, each against what is measured
# beside it in the same run.
bench: test-packages
	@$(call install,openssh-server openssh-client ffmpeg)
	$(GO) test $(FLAGS) -run '^$$' -bench 'Table|Lanes|Picture' -benchtime 1x -timeout 30m ./app/cmd/localpc
	$(GO) test $(FLAGS) -run '^$$' -bench Table -benchtime 1x -timeout 10m ./capabilities/computer/display

# The pictures in README, taken anew from the program as it is.
screenshots: test-packages npm
	$(GO) test $(FLAGS) -run '^$$' -bench Screenshots -benchtime 1x -timeout 10m ./app/cmd/localpc -screenshots $(CURDIR)/assets/readme

# A Debian package and a tarball, in build.
package: run-packages build
	@rm -rf build/package && mkdir -p build/package
	@for p in $(PROGRAMS); do strip -o build/package/$$p $(BIN)/$$p || exit 1; done
	@gzip -9nc packaging/changelog > build/package/changelog.Debian.gz
	@GO=$(GO) packaging/licences $(PROGRAMS:%=build/package/%) > build/package/licences.txt
	@gzip -9nk build/package/licences.txt
	SOURCE_DATE_EPOCH=$(DATE) LOCALPC_VERSION=$(VERSION) LOCALPC_ARCH=$(ARCH) \
		$(GO) run $(NFPM) package -f packaging/nfpm.yaml -p deb -t build/
	@rm build/package/*.gz
	@cp README.md LICENSE packaging/localpc.desktop packaging/localpc.service packaging/localpc-hub.service assets/icons/app.png build/package/
	tar --sort=name --mtime=@$(DATE) --owner=0 --group=0 --numeric-owner --transform 's,^package,localpc-$(VERSION),' \
		-C build -c package | gzip -9n > build/localpc_$(VERSION)_linux_$(ARCH).tar.gz
	@ls -l build/*.deb build/*.tar.gz

clean:
	rm -rf build

# Each part of the tests says how long it took, and all of them again at the end.
began = mkdir -p build && date +%s > build/$@.began
took  = echo "$@ took $$(($$(date +%s) - $$(cat build/$@.began))) s" | tee -a build/times.txt; rm build/$@.began

# install asks apt only for what is missing, and explains itself elsewhere.
define install
	if ! command -v dpkg-query >/dev/null; then echo "This is not Debian or Ubuntu; the program needs the like of: $(1)"; exit 0; fi; \
	missing=""; for p in $(1); do \
		dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	test -z "$$missing" && exit 0; echo "Installing:$$missing"; \
	sudo=""; test "$$(id -u)" = 0 || sudo="sudo"; \
	$$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null
endef
