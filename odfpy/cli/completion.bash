# Completion of odf for bash. For all shells to come:
#   odf completion bash > ~/.local/share/bash-completion/completions/odf
# or, in ~/.bashrc: eval "$(odf completion bash)"

_odf_complete() {
    local -a found
    local typed=${COMP_LINE:0:COMP_POINT} word cut=
    mapfile -t found < <(_ODF_COMPLETE=bash "$1" "$typed" 2>/dev/null)
    COMPREPLY=()
    if [[ ${found[0]} != words ]]; then
        compopt -o default
        return
    fi
    # What bash takes for a word begins behind a colon or an equals sign; the rest already exists.
    word=${typed##*[[:space:]]}
    [[ $word == *[:=]* && $COMP_WORDBREAKS == *:* ]] && cut=${word%"${word##*[:=]}"}
    for word in "${found[@]:1}"; do
        word=${word%%$'\t'*}
        COMPREPLY+=("${word#"$cut"}")
    done
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}

complete -F _odf_complete odf
