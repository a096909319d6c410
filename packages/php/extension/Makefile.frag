# Cargo tracks changes, so it runs each time; its output is copied only if it differs.
QUADRILLE_TARGET = $${CARGO_TARGET_DIR:-$(top_builddir)/target}/php

$(phplibdir)/quadrille.so: quadrille-by-cargo
	@cmp -s "$(QUADRILLE_TARGET)/release/libquadrille.so" $@ 2>/dev/null || \
		$(INSTALL_DATA) "$(QUADRILLE_TARGET)/release/libquadrille.so" $@

quadrille-by-cargo:
	PHP=$(PHP_EXECUTABLE) PHP_CONFIG=$(QUADRILLE_PHP_CONFIG) $(CARGO) build --release --locked \
		--manifest-path $(top_srcdir)/Cargo.toml --target-dir "$(QUADRILLE_TARGET)"

.PHONY: quadrille-by-cargo
