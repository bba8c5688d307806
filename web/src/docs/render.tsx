import { render as toHTML } from 'preact-render-to-string'
import { Contract } from './Contract'
import { read } from './spec'

/** The page of a contract, as HTML without a script: it is made when the page is built. */
export const render = (yaml: string): string => toHTML(<Contract spec={read(yaml)} />)
