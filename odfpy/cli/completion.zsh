#compdef odf
# Completion of odf for zsh. Put it into a folder of $fpath under the name _odf, or write into ~/.zshrc:
#   eval "$(odf completion zsh)"

_odf() {
    local -a found offers
    local line
    found=("${(@f)$(_ODF_COMPLETE=zsh "$words[1]" "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ $found[1] != words ]]; then
        _files
        return
    fi
    for line in "${(@)found[2,-1]}"; do
        case $line in
            *$'\t'*) offers+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            *) offers+=("${line//:/\\:}") ;;
        esac
    done
    _describe -V odf offers
}

if [[ $funcstack[1] == _odf ]]; then
    _odf "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _odf odf
fi
