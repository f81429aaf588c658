# Data files, packed or plain. Sourced by scripts that have die.

# read_packed FILE: FILE, or FILE.xz unpacked, on standard output.
read_packed() {
  if [[ -f $1 ]]; then
    cat -- "$1"
  elif [[ -f $1.xz ]]; then
    xz -dc -- "$1.xz"
  else
    die "neither $1 nor $1.xz is there; name the data folder, or set SEQCONV_DATA"
  fi
}
