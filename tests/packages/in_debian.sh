# Runs as root in a fresh Debian whose /try has the packages, this folder and models; the
# wheel first, as none of the libraries is there yet that Debian's packages bring.
set -eux
cd /try
export DEBIAN_FRONTEND=noninteractive
library='libsentencepiece|libutf8proc'
if dpkg -l | grep -E "$library"; then exit 1; fi
python3 -m venv /venv
/venv/bin/pip install --no-index seqconv-*manylinux*.whl
PATH=/venv/bin:$PATH sh packages/try_program.sh models > of_wheel
/venv/bin/python packages/translate.py models > of_python
rm -r /venv

apt-get install -y -q --no-install-recommends ./seqconv_*.deb
sh packages/try_program.sh models > of_debian
test -e /usr/share/man/man1/seqconv-translate.1.gz
apt-get install -y -q --no-install-recommends ./libseqconv-*.deb gcc libc6-dev pkg-config
dpkg -l | grep -E "$library"
examples=/usr/share/doc/libseqconv-dev/examples
gcc -std=c99 -Wall -Werror $examples/translate_text.c -o translate_text \
  $(pkg-config --cflags --libs seqconv_runtime)
./translate_text models/translation_1 'dalan mira' > of_c

dpkg -L seqconv libseqconv-runtime1 libseqconv-dev > files
apt-get purge -y -q seqconv libseqconv-runtime1 libseqconv-dev
while read -r file; do
  case $file in
    *seqconv*) if test -e "$file"; then exit 1; fi ;;
  esac
done < files
if find /etc /usr /var/lib/dpkg/info -name '*seqconv*' | grep .; then exit 1; fi
cmp of_wheel of_debian
cmp of_wheel of_python
[ "$(head -n 1 of_wheel)" = "$(cat of_c)" ]
