# Prints what zsh shows when Tab is pressed after a command line: completions.zsh FUNCTIONS DIRECTORY LINE
#
# zsh completes at a terminal alone, which zpty makes.
zmodload zsh/zpty || exit
zpty shell env TERM=dumb COLUMNS=200 zsh -f -i || exit
zpty -w shell "PS1=; unsetopt list_ambiguous; stty -echo; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -D -u; cd ${(q)2}; \
show() { zle complete-word; zle -R; BUFFER=; zle -I; print '<''end>' }; \
zle -N show; bindkey '^I' show; print '<''ready>'"
until [[ $text == *'<ready>'* ]]; do zpty -r shell text || exit; done
zpty -w -n shell "$3"$'\t'
until [[ $text == *'<end>'* ]]; do
  zpty -r shell text || exit
  print -r -- ${text//[$'\r\a\b']/}
done
zpty -d shell
