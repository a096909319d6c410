dnl Input of phpize for the configure script: `phpize && ./configure && make` builds the extension with cargo.

PHP_ARG_ENABLE([quadrille],
  [for encrypted fields],
  [AS_HELP_STRING([--enable-quadrille], [Enable encrypted database fields])],
  [yes])

if test "$PHP_QUADRILLE" != no; then
  AC_PATH_PROG([CARGO], [cargo])
  test -n "$CARGO" || AC_MSG_ERROR([the extension is written in Rust: install Rust and cargo (https://rustup.rs)])

  dnl The generator of the PHP bindings needs a path, and this may be a bare name.
  QUADRILLE_PHP_CONFIG=`command -v "$PHP_CONFIG"`
  test -n "$QUADRILLE_PHP_CONFIG" || AC_MSG_ERROR([$PHP_CONFIG is not a program: use --with-php-config=PATH])

  dnl Not PHP_NEW_EXTENSION, which compiles C. Makefile.frag has the rule.
  PHP_MODULES="\$(phplibdir)/quadrille.so"
  PHP_SUBST([CARGO])
  PHP_SUBST([QUADRILLE_PHP_CONFIG])
  PHP_ADD_MAKEFILE_FRAGMENT([$abs_srcdir/Makefile.frag])
fi
